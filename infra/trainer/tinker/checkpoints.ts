import { setTimeout as sleep } from 'node:timers/promises';
import { explanationOf, type HttpReply } from '../../http/client.ts';
import { futureResponse, parseTinkerPath, savedWeights } from '../../kits/tinker-wire/index.ts';
import {
  failureOf,
  parseReply,
  refused,
  type Submission,
  type TrainerConnection,
  trainerTimeouts,
} from './connection.ts';

/** A checkpoint's model, kind and name. `weights` include the optimizer's state. */
export interface CheckpointAddress {
  readonly modelId: string;
  readonly kind: 'weights' | 'sampler_weights';
  readonly name: string;
}

function tinkerPath({ modelId, kind, name }: CheckpointAddress): string {
  return `tinker://${modelId}/${kind}/${name}`;
}

/**
 * Saves a checkpoint once. A name that exists (409) was saved by an earlier try, because the server chooses model ids and a
 * name belongs to one step: it counts as saved once the server reports it as complete. One whose saving failed is deleted and
 * saved again.
 */
export async function saveOnce(
  connection: TrainerConnection,
  address: CheckpointAddress,
  submission: Submission,
  signal?: AbortSignal,
): Promise<string> {
  const first = await connection.post(submission, signal);
  if (first.status !== 409) return savedPath(connection, first, submission, signal);
  if (!/exists/i.test(explanationOf(first))) throw failureOf(first, submission.path);
  if ((await settledState(connection, address, signal)) === 'complete') return tinkerPath(address);
  await remove(connection, address, signal);
  return savedPath(connection, await connection.post(submission, signal), submission, signal);
}

/** Removes the checkpoint of a tinker path. */
export async function removeCheckpoint(
  connection: TrainerConnection,
  path: string,
  signal?: AbortSignal,
): Promise<void> {
  const address = parseTinkerPath(path);
  if (address === null) throw refused(`expected the tinker path of a checkpoint, got ${path}`);
  await remove(connection, address, signal);
}

async function remove(
  connection: TrainerConnection,
  { modelId, kind, name }: CheckpointAddress,
  signal?: AbortSignal,
): Promise<void> {
  const path = `/api/v1/training_runs/${modelId}/checkpoints/${kind}/${name}`;
  const removed = await connection.delete(path, signal);
  if (removed.status >= 400 && removed.status !== 404) throw failureOf(removed, path);
}

async function savedPath(
  connection: TrainerConnection,
  accepted: HttpReply,
  submission: Submission,
  signal?: AbortSignal,
): Promise<string> {
  if (accepted.status !== 200) throw failureOf(accepted, submission.path);
  const { request_id } = parseReply(futureResponse, accepted, submission.path);
  const reply = await connection.settled(request_id, submission, signal);
  return parseReply(savedWeights, reply, submission.path).path;
}

/** Waits until a checkpoint is no longer being written. */
async function settledState(
  connection: TrainerConnection,
  address: CheckpointAddress,
  signal?: AbortSignal,
): Promise<'complete' | 'failed'> {
  const deadline = performance.now() + trainerTimeouts.resultMs;
  while (performance.now() < deadline) {
    const reply = await stateReply(connection, address, signal);
    if (reply.status < 400) return 'complete';
    if (reply.status === 500 || reply.status === 404) return 'failed';
    if (reply.status !== 425) throw failureOf(reply, tinkerPath(address));
    await sleep(trainerTimeouts.pollPauseMs, undefined, signal === undefined ? {} : { signal });
  }
  throw refused(
    `${tinkerPath(address)} is still being written after ${trainerTimeouts.resultMs} ms; see the trainer's log`,
  );
}

function stateReply(
  connection: TrainerConnection,
  address: CheckpointAddress,
  signal?: AbortSignal,
): Promise<HttpReply> {
  if (address.kind === 'weights') {
    return connection.post({ path: '/api/v1/weights_info', json: { tinker_path: tinkerPath(address) } }, signal);
  }
  // The reply redirects to the archive; only its status is needed.
  return connection.get(archivePath(address), signal);
}

export function archivePath({ modelId, name }: CheckpointAddress): string {
  return `/api/v1/training_runs/${modelId}/checkpoints/${name}/archive`;
}
