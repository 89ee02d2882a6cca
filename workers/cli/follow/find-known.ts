import { shortKey } from '../../../workflows/contracts/ids.ts';
import type { RolloutRecord } from '../../../workflows/contracts/rollout-record.ts';
import type { StartRecord } from '../../../workflows/contracts/start-record.ts';
import type { ReadableStack } from '../stack/stack-client.ts';
import { note } from '../text/output.ts';
import { type FoundWorkflow, findIfKnown, unknownWorkflow, type WorkflowKind } from './find-workflow.ts';

/** A workflow as far as the server and the store know it. */
export interface KnownWorkflow {
  readonly id: string;
  readonly kind: WorkflowKind;
  /** The key of the workflow, or of the run of a group or a step. */
  readonly key: string;
  /** The workflow at the server; null if the server is away or has forgotten it. */
  readonly found: FoundWorkflow | null;
  /** The record of a rollout that the server does not know. */
  readonly record?: RolloutRecord;
}

/** Finds a workflow by its id, at the server or by its records. Throws if neither knows it. */
export async function findKnown(stack: ReadableStack, id: string): Promise<KnownWorkflow> {
  const { server } = stack;
  const found = server instanceof Error ? null : await findIfKnown(server, id);
  if (found !== null) return { id, kind: found.kind, key: await keyAt(stack, found), found };
  const recorded = await findRecorded(stack, id);
  if (recorded === null) throw server instanceof Error ? server : unknownWorkflow(id);
  if (server instanceof Error) note(`${server.message}; temper shows what the store holds`);
  return { ...recorded, id, found: null };
}

type Recorded = Omit<KnownWorkflow, 'id' | 'found'>;

/** Finds a workflow by the record of its start, of the start of its run, or by its own record. */
async function findRecorded({ shared }: ReadableStack, id: string): Promise<Recorded | null> {
  const start = await shared.starts.find(id);
  if (start !== null) return start;
  const part = partOf(id);
  const run = part === null ? null : await shared.starts.find(part.run, part.key);
  if (part !== null && run !== null) return { kind: part.kind, key: run.key };
  const record = await shared.rollouts.find({ workflowId: id });
  return record === null ? null : { kind: 'rollout', key: record.result.rollout, record };
}

/** Returns the run of a group or a step, as its workflow id says, the reverse of `groupId` and `stepId`. */
function partOf(id: string) {
  const [, run, key, what] = /^(.+)\/([0-9A-Za-z_-]{1,12})\/(group|step)-\d+$/.exec(id) ?? [];
  if (run === undefined || key === undefined) return null;
  return { run, key, kind: what === 'group' ? ('group' as const) : ('trainingStep' as const) };
}

/** Returns the key of a workflow that the server knows. That of a run's group or step is the key of the run. */
async function keyAt({ shared }: ReadableStack, { kind, handle, description }: FoundWorkflow): Promise<string> {
  const part = kind === 'group' || kind === 'trainingStep' ? partOf(handle.workflowId) : null;
  const run = part === null ? null : await shared.starts.find(part.run, part.key);
  return run?.key ?? (description.raw.workflowExecutionInfo?.firstRunId || description.runId);
}

/** Finds the record of a run's start. Throws if the run has not begun. */
export async function startOf({ shared }: Pick<ReadableStack, 'shared'>, known: KnownWorkflow): Promise<StartRecord> {
  const start = await shared.starts.find(known.id, shortKey(known.key));
  if (start !== null) return start;
  throw new Error(`${known.id} has no record yet: it has not begun, or its input was refused`);
}

/** Throws unless a workflow is of that kind. */
export function requireKind(known: KnownWorkflow, kind: WorkflowKind, expected: string): KnownWorkflow {
  if (known.kind === kind) return known;
  throw new Error(`${known.id} is a ${known.kind}, and ${expected} was expected; see \`temper show ${known.id}\``);
}
