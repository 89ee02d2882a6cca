import type { GatewayError, GatewayErrorKind } from '../../gateway-error.ts';
import type { ErrorBody, ModelList } from '../dialect.ts';

/** The model list of both OpenAI APIs. */
export const openaiModels: ModelList = {
  all: (name) => ({ object: 'list', data: [modelOf(name)] }),
  one: modelOf,
};

function modelOf(name: string) {
  return { id: name, object: 'model', created: 0, owned_by: 'temper' };
}

export function openaiError({ kind, message, status }: GatewayError): ErrorBody {
  const { type, code } = openaiErrorTypes[kind];
  return { status, body: { error: { message, type, param: null, code } } };
}

/** The types and codes by which clients distinguish errors, for example to compact their context. */
export const openaiErrorTypes: Record<GatewayErrorKind, { readonly type: string; readonly code: string | null }> = {
  unauthorized: { type: 'authentication_error', code: 'invalid_api_key' },
  'unknown-session': { type: 'authentication_error', code: 'unknown_session' },
  'session-closed': { type: 'invalid_request_error', code: 'session_closed' },
  submitted: { type: 'invalid_request_error', code: 'submitted' },
  'not-found': { type: 'invalid_request_error', code: 'not_found' },
  'wrong-method': { type: 'invalid_request_error', code: 'method_not_allowed' },
  malformed: { type: 'invalid_request_error', code: null },
  unsupported: { type: 'invalid_request_error', code: 'unsupported_value' },
  'too-large': { type: 'invalid_request_error', code: 'request_too_large' },
  'context-overflow': { type: 'invalid_request_error', code: 'context_length_exceeded' },
  'turn-limit': { type: 'insufficient_quota', code: 'turn_limit' },
  'token-budget': { type: 'insufficient_quota', code: 'token_budget' },
  'too-many-turns': { type: 'rate_limit_error', code: 'rate_limit_exceeded' },
  'engine-unavailable': { type: 'server_error', code: 'engine_unavailable' },
  'engine-invalid': { type: 'server_error', code: 'engine_invalid' },
  'gateway-closing': { type: 'server_error', code: 'gateway_restarting' },
  'journal-unavailable': { type: 'server_error', code: 'gateway_unavailable' },
  internal: { type: 'server_error', code: null },
};
