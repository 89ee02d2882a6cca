/** The failure of a keeper that the cluster reaches: it ended, does not answer, or sends what no keeper sends. */
export class KeeperFailure extends Error {
  override readonly name = 'KeeperFailure';
}

/** The beginning of what is said about a keeper whose end the cluster reports. */
export const keeperEnded = 'the keeper ended';

/** Whether the cluster has said that it could not start a keeper, or that a keeper did not end by itself. */
export const wasKeeperEnded = (cause: unknown): boolean =>
  cause instanceof Error && cause.message.startsWith(keeperEnded) && cause.message.includes('"status":"Failure"');
