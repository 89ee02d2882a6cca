import type { IncomingHttpHeaders } from 'node:http';
import { anthropicMessages } from './anthropic-messages/index.ts';
import type { Dialect } from './dialect.ts';
import { openaiChat } from './openai-chat/index.ts';
import { openaiResponses } from './openai-responses/index.ts';

/** All wire formats that agents may use. Adding one takes a folder here and one line in this list. */
export const dialects: readonly Dialect[] = [openaiChat, openaiResponses, anthropicMessages];

/** Returns the dialect of a request's path or, for a path that dialects share (`GET /v1/models`), that of its client. */
export function dialectOf(path: string, headers: IncomingHttpHeaders): Dialect {
  return (
    dialects.find((dialect) => dialect.path === path || dialect.counting?.path === path) ??
    dialects.find(({ clientHeader }) => clientHeader !== null && headers[clientHeader] !== undefined) ??
    openaiChat
  );
}
