export const minimumNode: string;
export const fetchedNode: string;

export function isCurrentNode(version?: string): boolean;

/** Returns the path of a Node that is new enough: this one, or one in the cache, which is installed through npm if missing. */
export function ensureNode(): Promise<string>;
