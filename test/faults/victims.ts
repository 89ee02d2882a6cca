import { connectClient, plainTarget } from '../../infra/temporal/connection.ts';
import type { PartStatus } from '../../workers/up/part.ts';
import type { ProductionServer } from '../helpers/temporal/production/server.ts';
import { until } from '../helpers/until.ts';

const backMs = 240_000;

/** A process that a test kills, and that is started again. */
export interface Victim {
  pid(): number | null;
  /** Kills it without a chance to end in order. */
  kill(): Promise<void>;
  /** Resolves once another one does its work. */
  untilBack(): Promise<void>;
}

/** A part of a stack, which its supervisor starts again. */
export function partOf(parts: () => readonly PartStatus[], part: string): Victim {
  const find = () => parts().find(({ name }) => name === part);
  let killed: number | null = null;
  return {
    pid: () => find()?.pid ?? null,
    async kill() {
      killed = find()?.pid ?? null;
      if (killed !== null) process.kill(killed, 'SIGKILL');
    },
    untilBack: () => until(() => find()?.state === 'running' && find()?.pid !== killed, backMs).then(() => {}),
  };
}

/** The two servers of a test, which it starts again itself. */
export function serversOf(
  { address, pid, crash, start, postgresql }: ProductionServer,
  namespace: string,
): Readonly<Record<'temporal' | 'postgresql', Victim>> {
  const untilAnswers = (): Promise<void> => until(() => answers(address, namespace), backMs).then(() => {});
  const back = (startAgain: () => Promise<void>) => () => startAgain().then(untilAnswers);
  return {
    temporal: { pid: () => pid() ?? null, kill: crash, untilBack: back(start) },
    postgresql: { pid: () => postgresql.pid() ?? null, kill: postgresql.crash, untilBack: back(postgresql.start) },
  };
}

/** Whether the server reads both of its databases. */
async function answers(address: string, namespace: string): Promise<boolean> {
  try {
    const { client, connection, close } = await connectClient(plainTarget(address, namespace));
    try {
      const { executions } = await connection.workflowService.listOpenWorkflowExecutions({ namespace });
      const { workflowId, runId } = executions?.[0]?.execution ?? {};
      if (workflowId) await client.workflow.getHandle(workflowId, runId ?? undefined).describe();
      return true;
    } finally {
      await close();
    }
  } catch {
    return false; // not up yet
  }
}
