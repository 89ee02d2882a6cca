import { asTimeWasOver } from '../../infra/sandbox/exit-status.ts';
import type { ProcessStatus, Sandbox } from '../../infra/sandbox/sandbox.ts';

/** The time that an agent has. */
export interface AgentTime {
  /** The agent's own time limit. */
  readonly timeoutMs: number;
  /** The longest time for which its clock stands still. */
  readonly waitingMs: number;
}

/** The agent whose time is measured. */
export interface TimedAgent extends AgentTime {
  readonly sandbox: Sandbox;
  readonly key: string;
  readonly diskBeforeMb: number;
  /** The time since its start, by a clock that does not jump. */
  readonly elapsedMs: () => number;
  /** Asks how long it has waited for an engine since its start. */
  readonly waitedMs: () => Promise<number>;
}

/** The status of an agent that has ended, or whose time is over. */
export interface InTime {
  readonly status: ProcessStatus;
  /** The time for which it has waited; null if that was not asked for. */
  readonly waitedMs: number | null;
}

/** The shortest pause between two questions to the gateway. An agent may run over its time by as much. */
const leastMs = 1_000;

/** Returns the rest of an agent's time: the clock stands still while the agent waits, up to the ceiling. */
export const timeLeftMs = ({ timeoutMs, waitingMs }: AgentTime, elapsedMs: number, waitedMs: number): number =>
  timeoutMs + Math.min(waitedMs, waitingMs) - elapsedMs;

/**
 * Waits until an agent has ended or has used its time. Whether it has waited is asked only when its time would be over, so that
 * most agents cost no question.
 */
export async function waitInTime(agent: TimedAgent, signal: AbortSignal): Promise<InTime> {
  const { sandbox, key, diskBeforeMb, elapsedMs } = agent;
  let timeoutMs = timeLeftMs(agent, elapsedMs(), 0);
  for (;;) {
    const found = await sandbox.wait(key, { timeoutMs: Math.max(0, timeoutMs), diskBeforeMb }, signal);
    signal.throwIfAborted();
    const status = asTimeWasOver(found);
    if (status.state !== 'running') return { status, waitedMs: null };
    const waitedMs = await agent.waitedMs();
    const leftMs = timeLeftMs(agent, elapsedMs(), waitedMs);
    // An earlier caller may have ended it, because its time was over.
    if (leftMs <= 0 || found.state !== 'running') return { status, waitedMs };
    timeoutMs = Math.max(leftMs, leastMs);
  }
}
