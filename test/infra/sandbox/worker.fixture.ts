// A worker process that a test kills: it starts a detached process in a sandbox, reports that and waits for its end.

import { openProviders } from '../../../infra/sandbox/providers.ts';
import { readConfig } from '../../../infra/settings/config.ts';
import { type SandboxKind, sandboxKinds } from '../../../workflows/contracts/sandbox-kinds.ts';

const isKind = (text: string | undefined): text is SandboxKind => sandboxKinds.some((kind) => kind === text);

const [kind, root, stack, name] = process.argv.slice(2);
if (!root || !stack || !name || !isKind(kind)) throw new Error('expected KIND ROOT STACK NAME');

const kubernetes = kind === 'kubernetes' ? { namespace: root } : null;
const place = kubernetes === null ? root : '/nowhere';
const { ready } = await openProviders({ root: place, stack, preferred: kind, e2b: readConfig().e2b, kubernetes });
const sandbox = await (await ready(kind)).attach(name);
const signal = new AbortController().signal;
const argv = [
  'sh',
  '-c',
  'echo started >>starts; while [ ! -e go ]; do sleep 0.02; done; echo finished; exit 6',
] as const;
await sandbox?.start({ key: 'job', argv: [...argv], env: {}, account: 'agent' }, signal);
process.stdout.write('started\n');
await sandbox?.wait('job', { timeoutMs: 60_000 }, signal);
