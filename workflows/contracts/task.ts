import type { BlobRef } from './blob.ts';
import type { BranchRule } from './trace.ts';

/**
 * What to solve. The files of a task (instruction, workspace, hidden tests, reference solution) are one blob in the store,
 * so that every host sees the same bytes and a verdict can be bound to them; only this description travels through history.
 */
export interface Task {
  /** Unique in its source, for example `quixbugs-bitcount`. */
  readonly id: string;
  /** A tar of the task directory in Harbor layout, packed deterministically. */
  readonly bundle: BlobRef;
  readonly image: string;
  /** Where a host gets the image from that lacks it; absent: from nowhere. A `dockerfile` is part of the bundle. */
  readonly imageFrom?: 'registry' | 'dockerfile';
  /** Absolute directory in the sandbox where the agent works. */
  readonly workdir: string;
  readonly agentTimeoutSec: number | null;
  readonly evaluationTimeoutSec: number | null;
  readonly cpus: number;
  readonly memoryMb: number;
  readonly diskMb: number;
}

/** A task that was looked up once for all rollouts of a group. */
export interface ResolvedTask {
  readonly task: Task;
  /** Does the agent call the model? If not, the rollout has no trace. */
  readonly usesModel: boolean;
  /** The agent's rule of which branches are trained; absent: all. */
  readonly branches?: BranchRule;
}

/**
 * How people name tasks in inputs. One string, so that it can be typed into a form:
 * - `generated:train/7/12`  task 12 of seed 7 of the built-in generator, split `train` or `test`
 * - `harbor:/tasks/foo`     a directory in Harbor layout below one of the stack's task roots
 * - `blob:<sha256>`         a packed task in the store
 * - `swe-gym:/rows.jsonl#id` a task of a data set: format, place (a path, a URL, `hub:<owner>/<name>`) and id
 */
export type TaskAddress = string;

/** A list of tasks, by address: `generated:train/7?count=64`, `harbor:/tasks`, `blob:<sha256>` of a list, `swe-gym:/rows.jsonl`. */
export type TaskSetAddress = string;
