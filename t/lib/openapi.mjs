// Executes every example of an OpenAPI document against a live server, and
// prints TAP lines without a plan:
//
//     node openapi.mjs <node_modules> <document.yaml> <url> <token>
//
// Examples of one name belong together: of parameters, of the request, and of
// the response, whose status is the one it must have.  They run in the order
// of the document.  The answer must fit its schema, have the members of the
// example, the headers that the document requires, and none that it does not
// name; of a server with a rate limit it tells a success how much is left.
// What the server makes up (ids, times, hashes) differs from the document: a string of an example
// stands for what was answered in its place, also in requests after it.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [modules, file, base, token] = process.argv.slice(2);
const require = createRequire(modules + '/');
const { parse } = require('yaml');
const Ajv = require('ajv/dist/2020.js').default;
const formats = require('ajv-formats').default;
const { Validator } = await import(pathToFileURL(
    modules + '/@seriousme/openapi-schema-validator/index.js'));

const document = parse(readFileSync(file, 'utf8'));
const rate = { $ref: '#/components/headers/RateLimit' };
const said = new Map();         // in the document -> by the server
let ran = 0;

function ok(good, name, why) {
    console.log(`${good ? 'ok' : 'not ok'} - ${name}`);
    if (!good && why !== undefined) {
        console.log(`# ${String(why).replace(/\n/g, '\n# ')}`);
    }
}

function deref(node) {
    while (node && node.$ref) {
        node = node.$ref.slice(2).split('/').reduce((at, key) =>
            at[key.replace(/~1/g, '/').replace(/~0/g, '~')], document);
    }

    return node;
}

const ajv = new Ajv({ strict: false, allErrors: true });
formats(ajv);
ajv.addSchema({ $id: 'doc', components: document.components });

// What any answer of HTTP has.
const anybodys = /^(cache-control|connection|content-(length|type)|date|keep-alive|server|transfer-encoding|x-accel-buffering)$/;

// References inside of a schema are to the whole document.
function fits(schema, value) {
    const text = JSON.stringify(schema).replaceAll('"#/', '"doc#/');
    const check = ajv.compile(JSON.parse(text));

    return check(value) ? null : ajv.errorsText(check.errors);
}

function live(value) {
    if (typeof value === 'string') {
        return said.get(value) ?? value;
    }

    if (Array.isArray(value)) {
        return value.map(live);
    }

    return value && typeof value === 'object'
        ? Object.fromEntries(Object.entries(value)
                                   .map(([k, v]) => [k, live(v)]))
        : value;
}

// Same shape; learns what stands for what.  Returns where it is not.
function differs(example, answer, at = '') {
    if (typeof example !== typeof answer
        || Array.isArray(example) !== Array.isArray(answer)
        || (example === null) !== (answer === null))
    {
        return `${at} is of another type`;
    }

    if (example && typeof example === 'object') {
        const a = Object.keys(example).sort().join();
        const b = Object.keys(answer).sort().join();

        // proofs are as long as the tree is high, and builds differ
        if (a !== b
            && !(Array.isArray(example) && /(?:path|features)$/.test(at)))
        {
            return `${at} has ${b} and not ${a}`;
        }

        for (const key of Object.keys(example)) {
            const d = key in answer
                ? differs(example[key], answer[key], `${at}.${key}`) : null;
            if (d) {
                return d;
            }
        }

        return null;
    }

    if (typeof example === 'string') {
        said.set(example, answer);
    }

    return null;
}

// What is the same on every server, of one that has done the same.
const fixed = /^(account|asset|amount_minor|held_minor|op|from|to|idem|code|kind|amount|seq|size|outcome|accepted|title|reason|idx|nonce)$/;

function contradicts(example, answer) {
    for (const key of Object.keys(example ?? {})) {
        const a = example[key], b = answer[key];

        if (a && typeof a === 'object') {
            const d = contradicts(a, b);
            if (d) {
                return d;
            }
        } else if (fixed.test(key) && a !== b) {
            return `${key} is ${b}, and ${a} in the document`;
        }
    }

    return null;
}

async function body_of(response) {
    if (!response.headers.get('content-type')?.includes('event-stream')) {
        return Buffer.from(await response.arrayBuffer());
    }

    let text = '';

    for await (const chunk of response.body) {
        text += Buffer.from(chunk).toString();
        if (text.includes('\n\n')) {
            break;
        }
    }

    return Buffer.from(text);
}

async function run(path, method, op, name, status, response) {
    const label = `${op.operationId}: ${name}`;
    const headers = {}, query = new URLSearchParams();
    let target = path, body;

    ran++;

    for (const p of (op.parameters ?? []).map(deref)) {
        const value = live(p.examples?.[name]?.value);

        if (value === undefined) {
            if (p.in === 'path') {
                ok(false, label, `no example of ${p.name}`);
            }
            continue;
        }

        const bad = fits(p.schema, value);
        if (bad && status < 400) {
            ok(false, `${label}: ${p.name} fits its schema`, bad);
        }

        if (p.in === 'path') {
            target = target.replace(`{${p.name}}`, p['x-ron-slashes']
                ? value : encodeURIComponent(value));
        } else if (p.in === 'query') {
            query.set(p.name, value);
        } else {
            headers[p.name] = value;
        }
    }

    for (const [type, media] of Object.entries(op.requestBody?.content ?? {})) {
        const value = live(media.examples?.[name]?.value);

        if (value !== undefined) {
            headers['Content-Type'] = type;
            body = typeof value === 'string' ? value : JSON.stringify(value);

            const bad = fits(media.schema, value);
            if (status !== 400) {
                ok(!bad, `${label}: the request fits its schema`, bad);
            }
        }
    }

    if (!op.security) {
        headers.Authorization = `Bearer ${token}`;
    }

    const url = base + target + (query.size ? `?${query}` : '');
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(), 10000);
    const ask = async () => {
        const a = await fetch(url, { method: method.toUpperCase(), headers,
                                     body, signal: stop.signal });
        return [ a, await body_of(a) ];
    };
    let [ answer, raw ] = await ask();

    // the history comes a little later

    const later = response.headers?.['Ledger-Watermark']
        && response.content['application/json'].examples[name].value;

    for (let i = 0; later && i < 90; i++) {
        if (answer.status === status && !differs(later, JSON.parse(raw))) {
            break;
        }
        await new Promise((done) => setTimeout(done, 100));
        [ answer, raw ] = await ask();
    }

    clearTimeout(timer);

    ok(answer.status === status, `${label}: ${status}`,
       `${answer.status} ${raw}`);

    for (const [header, spec] of Object.entries(response.headers ?? {})) {
        const h = deref(spec), value = answer.headers.get(header);

        const must = h.required || (h === deref(rate) && status < 400);

        if (must || value !== null) {
            const seen = value !== null && h.schema.type === 'integer'
                ? Number(value) : value;
            const bad = value === null ? 'absent' : fits(h.schema, seen);
            ok(!bad, `${label}: header ${header}`, bad);
        }
    }

    const named = Object.keys(response.headers ?? {})
        .map((header) => header.toLowerCase());
    const more = [...answer.headers.keys()]
        .filter((h) => !anybodys.test(h) && !named.includes(h));
    ok(!more.length, `${label}: its headers are documented`, more);

    if (!response.content) {
        ok(raw.length === 0, `${label}: no body`, raw);
        return;
    }

    const type = (answer.headers.get('content-type') ?? '').split(';')[0];
    const media = response.content[type];

    ok(media, `${label}: ${type} is documented`);

    if (!media) {
        return;
    }

    const value = /[/+]json$/.test(type) ? JSON.parse(raw) : raw.toString();
    const bad = fits(media.schema, value);
    ok(!bad, `${label}: the answer fits its schema`, `${bad}: ${raw}`);

    const example = media.examples?.[name]?.value;

    if (example !== undefined) {
        const off = fits(media.schema, example);
        ok(!off, `${label}: the example fits its schema`, off);
    }

    if (example !== undefined && typeof example === 'object') {
        const d = differs(example, value) ?? contradicts(example, value);
        ok(!d, `${label}: and is like the example`, `${d}: ${raw}`);
    }
}

// the document itself

const result = await new Validator().validate(file);
ok(result.valid, `${file} is OpenAPI 3.1`, JSON.stringify(result.errors));
ok(document.openapi.startsWith('3.1'), 'of that version');

const ids = new Set();

for (const [path, item] of Object.entries(document.paths)) {
    for (const [method, op] of Object.entries(item)) {
        const names = new Map();        // example -> [ status, response ]

        ok(!ids.has(op.operationId), `${op.operationId} is there once`);
        ids.add(op.operationId);

        for (const [status, spec] of Object.entries(op.responses)) {
            const response = deref(spec);
            const of = [ ...Object.values(response.content ?? {})
                            .flatMap((m) => Object.keys(m.examples ?? {})),
                         ...(response['x-ron-examples'] ?? []) ];

            for (const name of of) {
                names.set(name, [ +status, response ]);
            }
        }

        // a request whose answer nobody shows has an empty one, or is stale

        const asked = new Set([
            ...Object.values(op.requestBody?.content ?? {}),
            ...(op.parameters ?? []).map(deref),
        ].flatMap((p) => Object.keys(p.examples ?? {})));

        for (const name of asked) {
            if (!names.has(name)) {
                const empty = Object.entries(op.responses)
                    .find(([, r]) => !deref(r).content);
                ok(empty, `${op.operationId}: ${name} has an answer`);
                if (empty) {
                    names.set(name, [ +empty[0], deref(empty[1]) ]);
                }
            }
        }

        const order = [ ...asked, ...[...names.keys()]
                                    .filter((n) => !asked.has(n)) ];

        for (const name of order) {
            if (names.has(name)) {
                await run(path, method, op, name, ...names.get(name));
            }
        }
    }
}

ok(ran > 10, `${ran} examples were executed`);
process.exit(0);
