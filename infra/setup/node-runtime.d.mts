export const MINIMUM_NODE: string;

export function isCurrentNode(version?: string): boolean;

/** Path of a Node that is new enough: the one that runs, else one from the cache, brought by npm when it is not there. */
export function ensureNode(): Promise<string>;
