export { checkPrefix } from './check-prefix.ts';
export type {
  AssistantMessage,
  Conversation,
  Image,
  Message,
  Tool,
  ToolCall,
} from './conversation.ts';
export { InvalidModelDirectory, TemplateRejection } from './errors.ts';
export { loadModel } from './load-model.ts';
export type { Model } from './model.ts';
export { maxNesting, nestsWithin } from './nesting.ts';
export { invalidArguments, renderFull, renderText } from './render.ts';
export { continueBranch, renderSuffix } from './suffix.ts';
export type { ParsedCall, ReplyEvent, ReplyParser } from './tools/parser.ts';
