import { z } from 'zod';
import { action, observation, resetData, state } from './messages.ts';

/** The description of an environment, as `/metadata` returns it. */
export interface Metadata {
  readonly name: string;
  readonly description: string;
  readonly version: string;
}

/** The JSON schemas of `/schema`. */
export const schemas = () => ({
  action: z.toJSONSchema(action),
  observation: z.toJSONSchema(observation),
  state: z.toJSONSchema(state),
});

const described = (summary: string) => ({ summary, responses: { 200: { description: 'OK' } } });

/**
 * The OpenAPI document, by which `openenv validate` recognizes the server. It has no /reset, /step and /state: over plain HTTP each of
 * these would be an environment of its own in OpenEnv, and so they are messages of the WebSocket /ws only.
 */
export const openApi = ({ name, description }: Metadata) => ({
  openapi: '3.1.0',
  info: { title: name, version: '1.0.0', description },
  paths: {
    '/health': { get: described('Tells whether the server runs.') },
    '/metadata': { get: described('Describes the environment.') },
    '/schema': { get: described('Returns the JSON schemas of actions, observations and state.') },
    '/mcp': { post: described('Lists the tools, as JSON-RPC (tools/list).') },
    '/ws': {
      get: described(`Opens a WebSocket: reset (${Object.keys(resetData.shape).join(', ')}), step, state, mcp, close.`),
    },
  },
});
