import { SandboxFailure } from '../failure.ts';
import { apiStatus } from './answers.ts';
import type { Cluster } from './client.ts';
import type { Connection } from './connection.ts';
import { mayBeDoneAgain, mayBeDoneInside, needsNoRetry } from './keeper-failure.ts';
import { startWitness, type Witness, witnessBeside } from './witness-pod.ts';

const attempts = 3;

export interface BlockedPod {
  readonly cluster: Cluster;
  readonly pod: string;
  /** The name of its sandbox. */
  readonly sandbox: string;
  /** Whether its agent is root. */
  readonly root: boolean;
  /** Opens a connection again. */
  connect(): Promise<Connection>;
}

/**
 * Finds out whether what runs in a sandbox keeps temper from it: an agent that is root may end every keeper or fill the container with
 * processes, and any agent may fill its memory, so that the kernel ends the keeper. The evidence is the cluster's: it starts a command
 * in a container that nothing in the sandbox reaches. Returns undefined if no command starts there, or if the sandbox can be reached
 * again after a cut.
 */
export async function findBlock(blocked: BlockedPod, cause: unknown): Promise<SandboxFailure | undefined> {
  const { cluster, pod, root } = blocked;
  if (!mayBeDoneInside(cause, root)) return undefined;
  await using witness = root ? witnessBeside(cluster, pod) : startWitness(cluster, pod);
  // The witness lives until there is an answer.
  return await isBlocked(blocked, cause, witness);
}

async function isBlocked(
  { sandbox, root, connect }: BlockedPod,
  cause: unknown,
  witness: Witness,
): Promise<SandboxFailure | undefined> {
  let last = cause;
  for (let attempt = 1; attempt <= attempts && !needsNoRetry(last); attempt++) {
    try {
      await connect();
      return undefined;
    } catch (error) {
      // The API has an answer of its own.
      if (error instanceof SandboxFailure || apiStatus(error) !== undefined) return undefined;
      last = error;
    }
    if (!mayBeDoneAgain(last, root) || !(await witness.showsSign())) return undefined;
  }
  if (!(await witness.showsSign())) return undefined;
  const evidence = (last instanceof Error ? last.message : String(last)).slice(0, 500);
  const [loss, why] = root
    ? (['ended-inside', 'its agent, which is root, keeps temper from it'] as const)
    : (['out-of-memory', 'its memory is full, so that the kernel ends the programs of temper in it'] as const);
  const text = `sandbox ${sandbox} cannot be used since ${why}`;
  return new SandboxFailure('SandboxLost', text, { loss, evidence, cause });
}
