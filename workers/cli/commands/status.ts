import type { Client, WorkflowExecutionInfo } from '@temporalio/client';
import type { Command } from 'commander';
import { type ImageProgress, imageProgressText } from '../../../infra/sandbox/image.ts';
import { outcomes } from '../../../workflows/contracts/outcome.ts';
import { searchAttributes } from '../../../workflows/contracts/search-attributes.ts';
import { isUp, readUpFile, type UpFile } from '../../up/up-file.ts';
import { imageInProgress } from '../follow/image-in-progress.ts';
import { type RepeatedWork, repeatedWork, shortRepeatedText } from '../follow/repeated-work.ts';
import { type JsonOption, runningConfigOf, stackCommand, wholeNumber } from '../stack/command.ts';
import { hostNotes, hostRows, hostTable } from '../stack/hosts.ts';
import { laneRows, laneTable } from '../stack/lanes.ts';
import { taskName } from '../stack/set-name.ts';
import { readShares, type ShareFacts } from '../stack/shares.ts';
import { ago, print, printJson, table } from '../text/output.ts';

interface StatusOptions extends JsonOption {
  readonly limit: number;
}

interface RunRow {
  readonly id: string;
  readonly kind: string;
  readonly status: string;
  readonly phase: string | null;
  readonly step: number | null;
  readonly reward: number | null;
  /** The pool of engines that serves its policy, where it is known. */
  readonly pool: string | null;
  /** Null unless it is open. */
  readonly share: ShareFacts | null;
  readonly startedAt: string;
}

interface RolloutRow {
  readonly id: string;
  readonly task: string | null;
  readonly agent: string | null;
  readonly status: string;
  readonly outcome: string | null;
  readonly reward: number | null;
  /** The wait of its sandbox for its image; null if there is none. */
  readonly image: ImageProgress | null;
  /** The work that is tried again after a failure. */
  readonly repeated: readonly RepeatedWork[];
  readonly startedAt: string;
}

export function statusCommand(): Command {
  return stackCommand(
    'status',
    'Lists the processes, the hosts, the lanes of this host, the newest runs and the newest rollouts of a stack.',
    'temper status --json',
  )
    .option('--limit <n>', 'maximum number of runs, and of rollouts', wholeNumber(1, 1000), 10)
    .option('--json', 'print one JSON object to stdout')
    .action(status);
}

async function status(options: StatusOptions): Promise<void> {
  const { openStackClient } = await import('../stack/stack-client.ts');
  const config = await runningConfigOf(options);
  const up = await readUpFile(config.paths.up);
  const stack = up !== null && isUp(up) ? up : null;
  const { client, shared, close } = await openStackClient(config);
  try {
    const shareOf = await readShares(client, shared.hosts);
    const runs = await list(
      client,
      // The executions before the last one are the same run.
      'WorkflowType IN ("trainingRun", "evaluationSweep", "regrade") AND ExecutionStatus != "ContinuedAsNew"',
      options.limit,
      async (info) => runRow(info, await shareOf(info)),
    );
    const rollouts = await list(client, 'WorkflowType = "rollout"', options.limit, (info) => rolloutRow(client, info));
    const counts = await countRollouts(client);
    const hosts = await hostRows(shared);
    const lanes = await laneRows(client, config.host, await shared.lanes.find(config.host));
    if (options.json) return printJson({ stack, hosts, lanes, runs, rollouts, counts });
    if (stack !== null) print(`${processTable(stack)}\n`);
    if (hosts.length > 0) print(`${hostTable(hosts)}\n${hostNotes(hosts)}`);
    if (stack !== null && lanes.length > 0) print(`${laneTable(lanes)}\n`);
    print(runs.length === 0 ? 'no runs yet' : runTable(runs));
    const totals = Object.entries(counts).filter(([, count]) => count > 0);
    print(`\nrollouts: ${totals.map(([kind, count]) => `${kind} ${count}`).join(', ') || 'none yet'}`);
    if (rollouts.length > 0) print(rolloutTable(rollouts));
  } finally {
    await close();
  }
}

async function list<Row>(
  client: Client,
  query: string,
  limit: number,
  row: (info: WorkflowExecutionInfo) => Row | Promise<Row>,
): Promise<Row[]> {
  const found: WorkflowExecutionInfo[] = [];
  for await (const info of client.workflow.list({ query, pageSize: limit })) {
    found.push(info);
    if (found.length === limit) break;
  }
  // A row may need a request of its own.
  return Promise.all(found.map(row));
}

async function countRollouts(client: Client): Promise<Record<string, number>> {
  const count = async (query: string): Promise<number> =>
    (await client.workflow.count(`WorkflowType = "rollout" AND ${query}`)).count;
  const byOutcome = outcomes.map(
    async (outcome) => [outcome, await count(`${searchAttributes.outcome.name} = "${outcome}"`)] as const,
  );
  const running = count('ExecutionStatus = "Running"').then((value) => ['running', value] as const);
  return Object.fromEntries(await Promise.all([running, ...byOutcome]));
}

function runRow(
  { workflowId, type, status: { name }, memo, typedSearchAttributes, startTime }: WorkflowExecutionInfo,
  share: ShareFacts | null,
): RunRow {
  return {
    id: workflowId,
    kind: type,
    status: name.toLowerCase(),
    phase: typeof memo?.phase === 'string' ? memo.phase : null,
    step: typedSearchAttributes.get(searchAttributes.step) ?? null,
    reward: typedSearchAttributes.get(searchAttributes.reward) ?? null,
    pool: typeof memo?.pool === 'string' ? memo.pool : null,
    share,
    // Each execution of a run that continues as new has a start of its own.
    startedAt: (typeof memo?.startedAt === 'number' ? new Date(memo.startedAt) : startTime).toISOString(),
  };
}

async function rolloutRow(client: Client, info: WorkflowExecutionInfo): Promise<RolloutRow> {
  const { workflowId, runId, typedSearchAttributes: attributes, startTime } = info;
  const status = info.status.name.toLowerCase();
  const isOpen = status === 'running';
  const description = isOpen ? await client.workflow.getHandle(workflowId, runId).describe() : null;
  return {
    id: workflowId,
    task: attributes.get(searchAttributes.task) ?? null,
    agent: attributes.get(searchAttributes.agent) ?? null,
    status,
    outcome: attributes.get(searchAttributes.outcome) ?? null,
    reward: attributes.get(searchAttributes.reward) ?? null,
    image: (description && imageInProgress({ description })) ?? null,
    repeated: description === null ? [] : repeatedWork({ description }),
    startedAt: startTime.toISOString(),
  };
}

/** The most characters of a reason for an exit: one that ended at its start quotes its log. */
const exitCharacters = 100;

/** Formats the reason for an exit as a cell of a table. */
export function shortExit(reason: string): string {
  const line = reason.replaceAll(/\s+/g, ' ');
  return line.length <= exitCharacters ? line : `${line.slice(0, exitCharacters - 1)}…`;
}

function processTable({ parts, addresses }: UpFile): string {
  const rows = parts.map(({ name, state, process, restarts, lastExit }) => [
    name,
    state,
    process === null ? '-' : String(process.pid),
    String(restarts),
    lastExit === null ? '-' : shortExit(lastExit),
  ]);
  const { ui, temporal } = addresses;
  const address = ui === null ? `Temporal: ${temporal}` : `UI: ${ui}`;
  return `${table(['process', 'state', 'pid', 'restarts', 'last exit'], rows)}\n${address}`;
}

function runTable(rows: readonly RunRow[]): string {
  return table(
    ['run', 'kind', 'status', 'step', 'reward', 'pool', 'weight', 'share', 'slots', 'queued', 'grading', 'started'],
    rows.map((row) => [
      row.id,
      row.kind,
      row.status === 'running' ? (row.phase ?? row.status) : row.status,
      row.step === null ? '-' : String(row.step),
      row.reward === null ? '-' : row.reward.toFixed(2),
      row.pool ?? '-',
      ...(row.share === null ? ['-', '-', '-', '-', '-'] : shareCells(row.share)),
      ago(row.startedAt),
    ]),
  );
}

const shareCells = ({ weight, share, slots, queued, grading }: ShareFacts): readonly string[] => [
  String(weight),
  `${(100 * share).toFixed(0)} %`,
  ...[slots, queued, grading].map(String),
];

function rolloutTable(rows: readonly RolloutRow[]): string {
  return table(
    ['rollout', 'task', 'agent', 'outcome', 'reward', 'started'],
    rows.map((row) => [
      row.id,
      taskName(row.task ?? '-'),
      row.agent ?? '-',
      row.outcome ?? [row.status, ...doingOf(row)].join(': '),
      row.reward === null ? '-' : row.reward.toFixed(2),
      ago(row.startedAt),
    ]),
  );
}

/** Returns what an open rollout waits for, or what it does again. */
function doingOf({ image, repeated }: RolloutRow): readonly string[] {
  if (image !== null) return [shortImageText(image)];
  return repeated.slice(0, 1).map(shortRepeatedText);
}

/** Formats what a sandbox waits for without the cluster's own words, which are too long for a table. */
const shortImageText = ({ says: _, ...progress }: ImageProgress): string => imageProgressText(progress);
