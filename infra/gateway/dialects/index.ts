import type { Dialect } from './dialect.ts';
import { openaiChat } from './openai-chat.ts';

/** Every wire format that agents may speak; adding one is one file and one line. */
export const dialects: readonly Dialect[] = [openaiChat];

/** Words errors where no dialect is asked for, for example at `GET /v1/models`. */
export const commonDialect: Dialect = openaiChat;
