// Reads the lines that tree_interop prints and answers each with what the
// package named makes of the same question, then "yes" or "no": whether the
// package, or for a note Node's own Ed25519, accepts the answer it was given.

const crypto = require('crypto');
const fs = require('fs');

// The package prefers a browser's hash and falls back on Node's by catching an
// exception every time; given one that is there, it is three times as fast.

globalThis.window = { crypto: { subtle: { digest: (name, data) =>
    crypto.createHash(name.replace('-', '')).update(data).digest() } } };

const log = require(process.argv[2]).CoMETRE.RFC9162_SHA256;

const entry = (i) => Buffer.from('entry ' + i);
const hex = (bytes) => Buffer.from(bytes).toString('hex');
const bin = (text) => new Uint8Array(Buffer.from(text, 'hex'));

const leaves = [];
const roots = new Map();

async function first(n) {
    while (leaves.length < n) {
        leaves.push(await log.leaf(entry(leaves.length)));
    }

    return leaves.slice(0, n);
}

async function root(size) {
    if (!roots.has(size)) {
        roots.set(size, await log.root(await first(size)));
    }

    return roots.get(size);
}

// The verifiers of the package throw when a proof has a wrong length.

const accepts = (promise) => promise.catch(() => false);

async function inclusion(index, size, path) {
    const proof = await log.inclusion_proof(index, await first(size));
    const end = await accepts(log.verify_inclusion_proof(leaves[index],
        { ...proof, inclusion_path: path }));

    return [ proof.inclusion_path, end && hex(end) === hex(await root(size)) ];
}

// The package begins every proof with the root of the subtree where the old
// tree ends, also where RFC 9162 leaves it out because it is the old root
// itself, which is so when the old size is a power of two.

async function consistency(from, to, path) {
    const known = (from & (from - 1)) === 0;
    const old = await root(from);
    const proof = await log.consistency_proof({ tree_size: from },
        await first(to));
    const theirs = proof.consistency_path;

    if (known && hex(theirs.shift()) !== hex(old)) {
        throw new Error('the proof does not begin with the old root');
    }

    const good = await accepts(log.verify_consistency_proof(old,
        await root(to),
        { ...proof, consistency_path: known ? [ old, ...path ] : path }));

    return [ theirs, good ];
}

// A verifier of signed notes in a few lines, from their specification.

async function note(key, text) {
    const [ , name, id, data ] = /^([^+]+)\+([0-9a-f]{8})\+(.*)$/.exec(key);
    const typed = Buffer.from(data, 'base64');
    const digest = crypto.createHash('sha256')
        .update(name + '\n').update(typed).digest();

    const at = text.lastIndexOf('\n\n');
    const body = text.subarray(0, at + 1);
    const line = text.subarray(at + 2).toString();
    const [ , signer, base64 ] = /^\u2014 (\S+) (\S+)\n$/.exec(line);
    const sig = Buffer.from(base64, 'base64');

    const spki = Buffer.concat([
        Buffer.from('302a300506032b6570032100', 'hex'), typed.subarray(1)
    ]);
    const publicKey = crypto.createPublicKey({
        key: spki, format: 'der', type: 'spki'
    });

    const [ origin, size, hash, end ] = body.toString().split('\n');

    return typed[0] === 1 && typed.length === 33 && signer === name
        && digest.subarray(0, 4).toString('hex') === id
        && sig.subarray(0, 4).toString('hex') === id
        && crypto.verify(null, body, publicKey, sig.subarray(4))
        && origin === name && end === ''
        && hash === Buffer.from(await root(+size)).toString('base64');
}

async function answer(line) {
    const [ what, a, b, ...rest ] = line.split(' ');
    const path = rest.map(bin);
    let got;

    switch (what) {
    case 'root':
        got = hex(await root(+a));
        return `root ${a} ${got} ${got === b ? 'yes' : 'no'}`;

    case 'note':
        return `${line} ${await note(a, Buffer.from(b, 'hex')) ? 'yes' : 'no'}`;

    case 'inclusion':
        got = await inclusion(+a, +b, path);
        break;

    case 'consistency':
        got = await consistency(+a, +b, path);
        break;

    default:
        throw new Error('not a question: ' + line);
    }

    return [ what, a, b, ...got[0].map(hex), got[1] ? 'yes' : 'no' ].join(' ');
}

(async () => {
    for (const line of fs.readFileSync(0, 'utf8').trimEnd().split('\n')) {
        console.log(await answer(line));
    }
})();
