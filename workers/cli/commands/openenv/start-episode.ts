import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import type { EnvironmentDependencies, TaskEntry } from '../../../../infra/openenv/episodes/environment.ts';
import type { EpisodeEnd } from '../../../../infra/openenv/episodes/episode.ts';
import { controlQueue } from '../../../../workflows/contracts/queues.ts';
import type { RolloutRequest } from '../../../../workflows/contracts/rollout.ts';
import { searchAttributes, shownText } from '../../../../workflows/contracts/search-attributes.ts';
import type { rollout } from '../../../../workflows/index.ts';
import { workflowEnd } from '../../follow/workflow-end.ts';
import { note } from '../../text/output.ts';

/** The input of all episodes of a server: everything but the task. */
export type EpisodeRequest = Omit<RolloutRequest, 'task' | 'agent' | 'purpose' | 'upstream'> & {
  readonly upstream: string;
};

/** The wait before a call to an unreachable Temporal server is repeated. */
const againMs = 1_000;
const agent = 'mini';
const prefixOf = (upstream: string): string => `openenv/${upstream}/`;

/** Returns the function that starts the rollout of an episode, with the client as its upstream model. */
export function createEpisodeStarter(client: Client, request: EpisodeRequest): EnvironmentDependencies['start'] {
  return async ({ id, address }: TaskEntry) => {
    const workflowId = `${prefixOf(request.upstream)}${randomUUID()}`;
    const handle = await client.workflow.start<typeof rollout>('rollout', {
      workflowId,
      taskQueue: controlQueue,
      args: [{ ...request, agent, purpose: 'evaluation', task: address }],
      typedSearchAttributes: [shownText(searchAttributes.task, id), shownText(searchAttributes.agent, agent)],
      staticSummary: `OpenEnv episode of ${id}`,
    });
    note(`episode ${workflowId} of ${id} began`);
    let isOver = false;
    const end = endOf(() => handle.result()).then((how) => {
      isOver = true;
      note(
        `episode ${workflowId} of ${id} ended: ${how.outcome ?? how.failure?.message}${how.reward === null ? '' : `, reward ${how.reward}`}`,
      );
      return how;
    });
    return {
      rollout: handle.firstExecutionRunId,
      workflowId,
      end,
      async cancel() {
        while (!isOver) {
          try {
            await handle.cancel();
            return;
          } catch (error) {
            if (error instanceof WorkflowNotFoundError) return;
            await sleep(againMs);
          }
        }
      },
    };
  };
}

/** Waits for the end of a rollout, also while the Temporal server is away. */
async function endOf(result: () => ReturnType<typeof rollout>): Promise<EpisodeEnd> {
  for (;;) {
    try {
      const { outcome, reward, stop, failure } = await result();
      return {
        outcome,
        reward,
        stop,
        failure: failure === null ? null : { type: failure.type, message: failure.message },
      };
    } catch (error) {
      const end = workflowEnd(error);
      if (end !== null) {
        const outcome = end.kind === 'cancelled' || end.kind === 'terminated' ? 'cancelled' : null;
        return { outcome, reward: null, stop: null, failure: { type: end.kind, message: end.message } };
      }
      if (error instanceof WorkflowNotFoundError) {
        return { outcome: null, reward: null, stop: null, failure: { type: 'failed', message: error.message } };
      }
      await sleep(againMs);
    }
  }
}

/** Cancels the episodes that a server of the same name left when it was killed. Returns how many there were. */
export async function cancelLeftOver(client: Client, upstream: string): Promise<number> {
  const query = `WorkflowId STARTS_WITH "${prefixOf(upstream)}" AND ExecutionStatus="Running"`;
  let count = 0;
  for await (const { workflowId } of client.workflow.list({ query })) {
    count += 1;
    // It may have ended just now.
    await client.workflow
      .getHandle(workflowId)
      .cancel()
      .catch((error: unknown) => {
        if (!(error instanceof WorkflowNotFoundError)) throw error;
      });
  }
  return count;
}
