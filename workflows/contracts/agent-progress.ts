import { z } from 'zod';

/** The report of the activity `awaitAgent` in its heartbeats and failures: which of its two stages is in progress. */
const agentProgress = z.discriminatedUnion('stage', [
  z.object({ stage: z.literal('startAgent') }),
  z.object({ stage: z.literal('awaitAgent') }),
]);
export type AgentProgress = z.output<typeof agentProgress>;

/** Reads a report; null if there is none. */
export function readAgentProgress(details: unknown): AgentProgress | null {
  return agentProgress.safeParse(details).data ?? null;
}
