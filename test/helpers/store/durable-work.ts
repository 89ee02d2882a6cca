/**
 * Does everything that must outlast a power cut once its call has returned, below a directory, and tells the tracer after each:
 * `node durable-work.ts DIRECTORY`.
 */
import { existsSync, fsyncSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { openSession } from '../../../infra/gateway/control.ts';
import { createSessionFiles } from '../../../infra/gateway/sessions/session-files.ts';
import { claimHost } from '../../../infra/hosts/claim.ts';
import { createLease } from '../../../infra/hosts/lease.ts';
import { readMachineId } from '../../../infra/hosts/machine.ts';
import { writeDirectoryAtomically } from '../../../infra/kits/embedded-policy/model/atomic-directory.ts';
import { serverDirectories, writePublished } from '../../../infra/kits/embedded-policy/server/directories.ts';
import { makeDirectory } from '../../../infra/process/durable-directory.ts';
import { createKeptResults } from '../../../infra/sandbox/kept-results.ts';
import { openStackId, openStackKeys } from '../../../infra/stack.ts';
import { createDirectory } from '../../../infra/store/directory.ts';
import { sha256 } from '../../../infra/store/files.ts';
import { createHosts } from '../../../infra/store/hosts.ts';
import { createRecords } from '../../../infra/store/records.ts';
import { blobKey, createStore } from '../../../infra/store/store.ts';
import { openJournal } from '../../../infra/trainer/journal.ts';
import { returnedPath } from './strace.ts';

const root = process.argv[2] ?? '';
const home = join(root, 'home');
const objects = createDirectory(home);
const store = createStore(objects);
const records = createRecords(objects, 'runs');
const hosts = createHosts(objects);
const lease = createLease({ path: join(home, 'lease.json'), host: 'one', hosts, storeIsLocal: true });
const journals = (name: string) =>
  createSessionFiles({ dir: join(root, 'journals', name), shared: join(root, 'journals'), name });
const session = (id: string) =>
  openSession.parse({ session: id, expiresAt: Date.now() + 60_000, seed: 'run/1/0/0/1', group: null, sampling: {} });
const directories = serverDirectories(join(root, 'policy'), root);

async function createSession(host: string, id: string) {
  const opened = await journals(host).create(session(id));
  if (!('journal' in opened)) throw new Error('expected a session of this process');
  return opened;
}

/** Each by the name of what it writes. */
const operations: Readonly<Record<string, () => Promise<unknown>>> = {
  'stack id': () => openStackId({ stackFile: join(home, 'stack.json') }, objects),
  'stack key': () => openStackKeys({ paths: { stackKey: join(home, 'stack.key') }, stackKeys: null }, objects),
  machine: () => readMachineId(join(home, 'machine.json')),
  lease: async () => {
    const facts = { version: '1.0.0', capacity: 4, taken: 0, sandboxes: ['local'] } as const;
    const claim = { host: 'one', machine: 'm', lease, leaseMs: 60_000, watchMs: 1, facts, onWatch: () => undefined };
    await claimHost(hosts, claim, AbortSignal.timeout(60_000));
  },
  renewal: () => lease.renew(0),
  blob: () => store.put(Buffer.from('a blob'), 'text/plain'),
  'blob of another writer': async () => {
    const bytes = Buffer.from('another blob');
    const path = join(home, blobKey(sha256(bytes)));
    await makeDirectory(dirname(path));
    const file = openSync(path, 'wx');
    writeSync(file, bytes);
    fsyncSync(file);
    // The other writer has not come to the directory yet.
    const { size } = await store.put(bytes, 'text/plain');
    if (size !== bytes.length) throw new Error('expected the blob');
  },
  record: () => records.write('run', 'group-1', { is: 'new' }),
  'record in the folder of another process': () => {
    // It was killed before it made the folder's name durable.
    mkdirSync(join(home, 'runs', 'other'));
    return records.write('other', 'group-1', { is: 'new' });
  },
  'replaced record': () => records.write('run', 'group-1', { is: 'another' }),
  'trainer journal': async () => (await openJournal(objects, 'run')).write({ step: 1 }),
  'kept result': () => createKeptResults(join(root, 'results'), 60_000).keep({ rollout: 'r', epoch: 1 }, { a: 1 }),
  'session journal': async () => {
    const { journal } = await createSession('lost', 's-1');
    await journal.append({ kind: 'flag', flag: 'turn-limit', key: 'k', at: 1 });
    await journal.close();
  },
  'adopted session': () => journals('own').adopt('s-1', 'lost', 'own/1'),
  'sealed session': async () => {
    const { journal, opened } = await createSession('own', 's-2');
    await journal.close();
    await journals('own').seal(opened, { turns: 0 } as never);
  },
  checkpoint: async () =>
    writeDirectoryAtomically(
      directories.checkpoint({ modelId: 'm', kind: 'weights', name: 'v1' }),
      new Map([['a', Buffer.from('weights')]]),
    ),
  'published weights': () => writePublished(directories, { path: 'p', label: 'v1' }),
};

for (const [name, operation] of Object.entries(operations)) {
  await operation();
  existsSync(`${returnedPath}${name}`);
}
