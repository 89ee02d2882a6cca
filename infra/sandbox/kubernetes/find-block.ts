import { SandboxFailure } from '../failure.ts';
import { apiStatus, type Cluster } from './client.ts';
import { type Connection, KeeperFailure } from './connection.ts';
import { execPath } from './exec-path.ts';
import { sign, witness } from './witness.ts';

const attempts = 3;
const signMs = 30_000;
const statusStream = 3;

export interface BlockedPod {
  readonly cluster: Cluster;
  readonly pod: string;
  /** The name of its sandbox. */
  readonly sandbox: string;
  /** Opens a connection again. */
  connect(): Promise<Connection>;
}

/**
 * Finds out whether what runs in a sandbox whose agent is root keeps temper from it, such as by ending every keeper or by filling the
 * container with processes. The evidence is the cluster's: it starts a command in the container beside the sandbox, which nothing in
 * the sandbox reaches. Returns undefined if no command starts there, or if the sandbox can be reached again after a cut.
 */
export async function findBlock(blocked: BlockedPod, cause: unknown): Promise<SandboxFailure | undefined> {
  let last = cause;
  for (let attempt = 1; attempt <= attempts && !(last instanceof KeeperFailure); attempt++) {
    try {
      await blocked.connect();
      return undefined;
    } catch (error) {
      // The API has an answer of its own.
      if (error instanceof SandboxFailure || apiStatus(error) !== undefined) return undefined;
      last = error;
    }
    if (!(await showsSign(blocked))) return undefined;
  }
  if (!(await showsSign(blocked))) return undefined;
  const evidence = last instanceof Error ? last.message : String(last);
  const text = `sandbox ${blocked.sandbox} cannot be used since its agent, which is root, keeps temper from it`;
  return new SandboxFailure('SandboxLost', text, { loss: 'ended-inside', evidence: evidence.slice(0, 500), cause });
}

/** Whether the cluster starts a command in the container beside a sandbox. */
async function showsSign({ cluster: { namespace, sockets }, pod }: BlockedPod): Promise<boolean> {
  const ended = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => ended.resolve(false), signMs);
  const path = execPath({ namespace, pod, container: witness, stdin: false }, sign);
  const opening = sockets.connect(path, null, (stream, bytes) => {
    if (stream === statusStream) ended.resolve(String(bytes).includes('"Success"'));
    return true;
  });
  opening.then(
    (socket) => socket.on('close', () => ended.resolve(false)),
    () => ended.resolve(false),
  );
  try {
    return await ended.promise;
  } finally {
    clearTimeout(timer);
    opening.then(
      (socket) => socket.terminate(),
      () => undefined,
    );
  }
}
