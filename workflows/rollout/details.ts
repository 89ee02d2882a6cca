import type { FailureRecord } from '../contracts/failures.ts';
import type { Outcome } from '../contracts/outcome.ts';
import { type Stage, stages } from '../contracts/rollout.ts';

export interface Position {
  readonly task: string;
  readonly agent: string;
  readonly host: string | null;
  readonly epoch: number;
  readonly seconds: Readonly<Partial<Record<Stage, number>>>;
  /** The stages in progress; sometimes two at a time. */
  readonly running: ReadonlySet<Stage>;
  /** The stages that wait because the rollout is paused. */
  readonly waiting: ReadonlySet<Stage>;
  /** The stage that was called last. */
  readonly latest: Stage;
  /** The reason for the pause, also before it takes effect; null without a pause. */
  readonly pausedBecause: string | null;
  /** Remarks on its course for people, such as on lost hosts. */
  readonly notes: readonly string[];
}

export interface RolloutEnd {
  readonly outcome: Outcome;
  readonly reward: number | null;
  readonly failure: FailureRecord | null;
  /** The reasons for the reward in a few words; may be empty. */
  readonly account: string;
}

/** Formats a running rollout for the UI: a headline, then all stages. */
export function positionText(position: Position): string {
  const { running, waiting, latest, seconds } = position;
  const reached = Math.max(...[latest, ...running, ...waiting].map((name) => stages.indexOf(name)));
  const list = stages.flatMap((name, index) => {
    if (running.has(name)) return [`- **${name}** ← now`];
    if (waiting.has(name)) return [`- **${name}** ← next`];
    const took = seconds[name];
    if (took !== undefined) return [`- ${name} ✓ ${took.toFixed(2)} s`];
    // Few rollouts lose their host.
    if (name === 'adoptSandbox') return [];
    if (name === 'startAgent' && running.has('awaitAgent')) return [`- ${name}: in the activity of awaitAgent`];
    return [index < reached ? `- ${name}: skipped` : `- ${name}`];
  });
  return [headline(position), ...paragraphs(position.notes), '', ...list].join('\n');
}

const paragraphs = (texts: readonly string[]): string[] => texts.flatMap((text) => ['', text]);

function headline(position: Position): string {
  const { running, waiting, latest, pausedBecause } = position;
  const names = (all: Iterable<Stage>): string => [...all].join(' and ');
  const reason = pausedBecause === null ? '' : ` (${pausedBecause})`;
  if (running.size === 0 && waiting.size > 0) return `**paused before ${names(waiting)}**${reason}${place(position)}`;
  const soon = pausedBecause === null ? '' : `; pauses after this stage${reason}`;
  return `**${names(running.size > 0 ? running : [latest])}**${place(position)}${soon}`;
}

/** Formats a rollout that has ended for the UI: its end, the reason, and the time of each stage. */
export function endingText(position: Position, { outcome, reward, failure, account }: RolloutEnd): string {
  const score = reward === null ? '' : `, reward ${reward}`;
  const why = [
    ...(account === '' ? [] : ['', account]),
    ...(failure === null ? [] : ['', `${failure.type} at ${failure.stage ?? 'start'}: ${failure.message}`]),
  ];
  const list = stages.flatMap((name) => {
    const took = position.seconds[name];
    return took === undefined ? [] : [`- ${name} ${name === failure?.stage ? '✗' : '✓'} ${took.toFixed(2)} s`];
  });
  return [`**${outcome}**${score}${place(position)}`, ...paragraphs(position.notes), ...why, '', ...list].join('\n');
}

function place({ host, epoch, agent, task }: Position): string {
  const where = host === null ? '' : ` on ${host}`;
  const again = epoch === 1 ? '' : `, epoch ${epoch}`;
  return `${where}${again}: ${agent} at ${task}`;
}
