import type { FailureRecord } from '../contracts/failures.ts';
import type { Outcome } from '../contracts/outcome.ts';
import { type Stage, stages } from '../contracts/rollout.ts';

export interface Position {
  readonly task: string;
  readonly agent: string;
  readonly host: string | null;
  readonly epoch: number;
  readonly seconds: Readonly<Partial<Record<Stage, number>>>;
  /** Stages in progress: now and then two at a time. */
  readonly running: ReadonlySet<Stage>;
  /** Stages that have not begun, because the rollout is paused. */
  readonly waiting: ReadonlySet<Stage>;
  /** The one that was called last. */
  readonly latest: Stage;
  /** Why it is paused, or will be; null when it isn't. */
  readonly pausedBecause: string | null;
}

interface Ending {
  readonly outcome: Outcome;
  readonly reward: number | null;
  readonly failure: FailureRecord | null;
  /** How it came to that, in a few words; may be empty. */
  readonly account: string;
}

/** What the UI shows of a rollout that runs: one line that says where it is, then all stages. */
export function positionText(position: Position): string {
  const { running, waiting, latest, seconds } = position;
  const reached = Math.max(...[latest, ...running, ...waiting].map((name) => stages.indexOf(name)));
  const list = stages.map((name, index) => {
    if (running.has(name)) return `- **${name}** ← now`;
    if (waiting.has(name)) return `- **${name}** ← next`;
    const took = seconds[name];
    if (took !== undefined) return `- ${name} ✓ ${took.toFixed(2)} s`;
    return index < reached ? `- ${name}: skipped` : `- ${name}`;
  });
  return [headline(position), '', ...list].join('\n');
}

function headline(position: Position): string {
  const { running, waiting, latest, pausedBecause } = position;
  const names = (all: Iterable<Stage>): string => [...all].join(' and ');
  const reason = pausedBecause === null ? '' : ` (${pausedBecause})`;
  if (running.size === 0 && waiting.size > 0) return `**paused before ${names(waiting)}**${reason}${place(position)}`;
  const soon = pausedBecause === null ? '' : `; pauses after this stage${reason}`;
  return `**${names(running.size > 0 ? running : [latest])}**${place(position)}${soon}`;
}

/** What the UI shows of a rollout that has ended: how, why, and where its time went. */
export function endingText(position: Position, { outcome, reward, failure, account }: Ending): string {
  const score = reward === null ? '' : `, reward ${reward}`;
  const why = [
    ...(account === '' ? [] : ['', account]),
    ...(failure === null ? [] : ['', `${failure.type} at ${failure.stage ?? 'start'}: ${failure.message}`]),
  ];
  const list = stages.flatMap((name) => {
    const took = position.seconds[name];
    return took === undefined ? [] : [`- ${name} ${name === failure?.stage ? '✗' : '✓'} ${took.toFixed(2)} s`];
  });
  return [`**${outcome}**${score}${place(position)}`, ...why, '', ...list].join('\n');
}

function place({ host, epoch, agent, task }: Position): string {
  const where = host === null ? '' : ` on ${host}`;
  const again = epoch === 1 ? '' : `, attempt ${epoch}`;
  return `${where}${again}: ${agent} at ${task}`;
}
