import type { IncomingHttpHeaders } from 'node:http';
import { anthropicMessages } from './anthropic-messages/index.ts';
import type { Dialect } from './dialect.ts';
import { openaiChat } from './openai-chat/index.ts';
import { openaiResponses } from './openai-responses/index.ts';

/** Every wire format that agents may speak; adding one is one file and one line. */
export const dialects: readonly Dialect[] = [openaiChat, openaiResponses, anthropicMessages];

/** The dialect of a request; where the path doesn't tell, for example at `GET /v1/models`, that of the client. */
export function dialectOf(path: string, headers: IncomingHttpHeaders): Dialect {
  return (
    dialects.find((dialect) => dialect.path === path || dialect.counting?.path === path) ??
    dialects.find(({ clientHeader }) => clientHeader !== null && headers[clientHeader] !== undefined) ??
    openaiChat
  );
}
