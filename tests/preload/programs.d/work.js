// SPDX-License-Identifier: MIT
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const zlib = require('zlib');
const crypto = require('crypto');
const { execFileSync } = require('child_process');

function churn(seed) {
	let x = seed, list = [], buffers = [];
	for (let i = 0; i < 100000; i++) {
		x = (x * 1103515245 + 12345) % 2147483648;
		list[x % 5000] = { n: i, s: 'x'.repeat(x % 50), a: [i, x] };
		if (i % 50 === 0)
			buffers[x % 300] = Buffer.alloc(x % 100000, i % 256);
	}
	return list.filter(Boolean).length + buffers.reduce((n, b) => n + (b ? b.length : 0), 0);
}

if (!isMainThread) {
	parentPort.postMessage(churn(workerData));
} else {
	const text = JSON.stringify(Array.from({ length: 50000 }, (_, i) => ({ i, s: 's' + i })));
	console.log(text.length, JSON.parse(text).length);
	const packed = zlib.gzipSync(Buffer.from(text));
	console.log(zlib.gunzipSync(packed).toString() === text);
	console.log(crypto.createHash('sha256').update(text).digest('hex'));
	console.log(crypto.pbkdf2Sync('p', 's', 5000, 32, 'sha256').toString('hex'));
	for (let i = 0; i < 5; i++)
		process.stdout.write(execFileSync('/bin/echo', [String(i)]));
	const workers = [1, 2, 3, 4].map(n => new Promise((ok, bad) => {
		const w = new Worker(__filename, { workerData: n });
		w.on('message', ok);
		w.on('error', bad);
	}));
	const tasks = Array.from({ length: 40 }, (_, i) => new Promise((ok, bad) =>
		zlib.deflate(Buffer.alloc(200000, i), (e, b) => e ? bad(e) : ok(b.length))));
	Promise.all(workers.concat(tasks)).then(r => console.log(r.join(' '), churn(9)));
}
