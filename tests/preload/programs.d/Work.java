// SPDX-License-Identifier: MIT
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.*;
import java.util.concurrent.*;
import java.util.zip.*;

public class Work {
	static long churn(int seed) {
		Random random = new Random(seed);
		List<byte[]> blocks = new ArrayList<>();
		ByteBuffer[] direct = new ByteBuffer[30]; // malloc's, by Unsafe
		for (int i = 0; i < 60000; i++) {
			if (blocks.size() < 500)
				blocks.add(new byte[random.nextInt(3000)]);
			else
				blocks.set(random.nextInt(500), new byte[random.nextInt(3000)]);
			if (i % 100 == 0)
				direct[random.nextInt(30)] = ByteBuffer.allocateDirect(1 + random.nextInt(200000));
		}
		long total = 0;
		for (byte[] b : blocks)
			total += b.length;
		for (ByteBuffer b : direct)
			total += b == null ? 0 : b.capacity();
		return total;
	}

	static int squeeze(int seed) throws Exception { // zlib's state is malloc's
		byte[] data = new byte[300000], packed = new byte[400000], back = new byte[300000];
		for (int i = 0; i < data.length; i++)
			data[i] = (byte) (i * seed / 100);
		Deflater deflater = new Deflater();
		deflater.setInput(data);
		deflater.finish();
		int n = deflater.deflate(packed);
		deflater.end();
		Inflater inflater = new Inflater();
		inflater.setInput(packed, 0, n);
		inflater.inflate(back);
		inflater.end();
		if (!Arrays.equals(data, back))
			throw new Exception("zlib");
		return n;
	}

	public static void main(String[] args) throws Exception {
		ExecutorService pool = Executors.newFixedThreadPool(4);
		List<Future<Long>> results = new ArrayList<>();
		for (int i = 0; i < 8; i++) {
			int seed = i;
			results.add(pool.submit(() -> churn(seed) + squeeze(seed + 1)));
		}
		for (Future<Long> f : results)
			System.out.println(f.get());
		pool.shutdown();
		Map<String, Integer> map = new TreeMap<>();
		for (int i = 0; i < 200000; i++)
			map.merge("k" + i * 7919L % 5003, i, Integer::sum);
		byte[] sum = MessageDigest.getInstance("SHA-256").digest(map.toString().getBytes());
		System.out.println(HexFormat.of().formatHex(sum));
		for (int i = 0; i < 500; i++) {
			Thread t = new Thread(() -> new byte[1000].clone());
			t.start();
			t.join();
		}
		Process p = new ProcessBuilder("/bin/echo", "child").inheritIO().start();
		System.out.println(p.waitFor());
	}
}
