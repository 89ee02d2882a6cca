import type { WorkflowExecutionDescription } from '@temporalio/client';
import { hasFailed, type RepeatedWork, repeatedWork } from '../../follow/repeated-work.ts';

/** The pause between two questions. Each is about one rollout, so that the server has as few of them for many rollouts as for one. */
const usualMs = 1_000;

/** The part of a client that describes workflows. */
interface DescribingClient {
  readonly workflow: { getHandle(id: string): { describe(): Promise<WorkflowExecutionDescription> } };
}

export interface RepeatWatch {
  close(): void;
}

/** Watches rollouts in turn, and reports work that is tried again after a failure, once for each stage and type of failure. */
export function watchRepeats(
  client: DescribingClient,
  running: () => readonly string[],
  report: (workflowId: string, work: RepeatedWork) => void,
  everyMs = usualMs,
): RepeatWatch {
  const reported = new Set<string>();
  let next = 0;
  let closed = false;
  async function look(): Promise<void> {
    const ids = running();
    const id = ids[next % Math.max(1, ids.length)];
    next += 1;
    if (id === undefined) return;
    const description = await client.workflow.getHandle(id).describe();
    for (const work of repeatedWork({ description }).filter(hasFailed)) {
      const key = `${id} ${work.stage} ${work.type}`;
      if (closed || reported.has(key) || !running().includes(id)) continue;
      reported.add(key);
      report(id, work);
    }
  }
  let busy = false;
  const timer = setInterval(() => {
    if (busy) return;
    busy = true;
    // A server that does not answer is reported by what waits for the rollouts' results.
    look()
      .catch(() => undefined)
      .finally(() => {
        busy = false;
      });
  }, everyMs).unref();
  return {
    close() {
      closed = true;
      clearInterval(timer);
    },
  };
}
