// SPDX-License-Identifier: MIT
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

template <int N> struct deep {
	using type = std::tuple<typename deep<N - 1>::type, std::vector<std::integral_constant<int, N>>>;
	static int value(const std::vector<int> &v) { return deep<N - 1>::value(v) + v[N % v.size()]; }
};
template <> struct deep<0> {
	using type = int;
	static int value(const std::vector<int> &) { return 0; }
};

using thing = std::variant<int, std::string, std::vector<double>, std::map<int, std::string>>;

int main()
{
	std::unordered_map<std::string, thing> all;
	std::vector<std::function<int(int)>> steps;
	for (int i = 0; i < 100; i++)
		steps.push_back([=](int x) { return x * i + deep<200>::value({i, x, 3}); });
	std::regex r("([a-z]+)([0-9]*)");
	std::stringstream s;
	for (auto &f : steps)
		s << f(3) << ' ';
	all["a"] = s.str();
	std::cout << std::regex_replace(s.str(), r, "$2") << sizeof(deep<40>::type) << '\n';
	std::visit([](auto &x) { std::cout << sizeof(x); }, all["a"]);
	return 0;
}
