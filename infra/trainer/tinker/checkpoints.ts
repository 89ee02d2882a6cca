import { setTimeout as sleep } from 'node:timers/promises';
import { explanationOf, type HttpReply } from '../../http/client.ts';
import { futureResponse as accepted200, savedWeights } from '../../kits/tinker-wire/index.ts';
import {
  failureOf,
  parseReply,
  refused,
  type Submission,
  type TrainerConnection,
  trainerTimeouts,
} from './connection.ts';

/** A checkpoint's name below its model; training weights carry the optimizer's state. */
export interface CheckpointAddress {
  readonly modelId: string;
  readonly kind: 'weights' | 'sampler_weights';
  readonly name: string;
}

export function tinkerPath({ modelId, kind, name }: CheckpointAddress): string {
  return `tinker://${modelId}/${kind}/${name}`;
}

/**
 * Saves once. A name that exists (409) was saved by an earlier attempt: model ids are the server's own and names are one
 * step's, so it is ours as soon as the server says that it is complete. One whose saving failed is deleted and saved again.
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
  const path = `/api/v1/training_runs/${address.modelId}/checkpoints/${address.kind}/${address.name}`;
  const removed = await connection.delete(path, signal);
  if (removed.status >= 400 && removed.status !== 404) throw failureOf(removed, path);
  return savedPath(connection, await connection.post(submission, signal), submission, signal);
}

async function savedPath(
  connection: TrainerConnection,
  accepted: HttpReply,
  submission: Submission,
  signal?: AbortSignal,
): Promise<string> {
  if (accepted.status !== 200) throw failureOf(accepted, submission.path);
  const { request_id } = parseReply(accepted200, accepted, submission.path);
  const reply = await connection.settled(request_id, submission, signal);
  return parseReply(savedWeights, reply, submission.path).path;
}

/** Waits out a checkpoint that is being written. */
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
    `${tinkerPath(address)}: expected it to be complete, it is still being written; look at the trainer's log`,
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
  // Answers with a redirect to the archive, which nobody follows here.
  return connection.get(archivePath(address), signal);
}

export function archivePath({ modelId, name }: CheckpointAddress): string {
  return `/api/v1/training_runs/${modelId}/checkpoints/${name}/archive`;
}
