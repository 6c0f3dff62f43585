/** What a model is told of the built-in tools, in its order: a table of its own, so that asking a question loads none of their code. */

import type { Tool } from '../runtime/port.ts'

/** All of a tool but what it does. */
export type Described = Omit<Tool, 'touches' | 'invoke'>

export const specs = {
  time: {
    name: 'time',
    description: 'Current local and UTC time.',
    parameters: { type: 'object', properties: {}, additionalProperties: false },
    risk: 'low',
    timeoutMs: 30_000,
    idempotent: true,
  },
  file_list: {
    name: 'file_list',
    description: 'List a folder.',
    parameters: {
      type: 'object',
      properties: { path: { type: 'string' }, depth: { type: 'integer', minimum: 1, maximum: 9 } },
      additionalProperties: false,
    },
    risk: 'low',
    timeoutMs: 30_000,
    idempotent: true,
  },
  file_read: {
    name: 'file_read',
    description: 'Read a text file; offset: first line, limit: number of lines.',
    parameters: {
      type: 'object',
      properties: { path: { type: 'string' }, offset: { type: 'integer', minimum: 1 }, limit: { type: 'integer', minimum: 1 } },
      required: ['path'],
      additionalProperties: false,
    },
    risk: 'low',
    timeoutMs: 30_000,
    idempotent: true,
  },
  file_write: {
    name: 'file_write',
    description: 'Create or replace a text file.',
    parameters: {
      type: 'object',
      properties: { path: { type: 'string' }, content: { type: 'string' } },
      required: ['path', 'content'],
      additionalProperties: false,
    },
    risk: 'medium',
    timeoutMs: 30_000,
    idempotent: true,
  },
  file_edit: {
    name: 'file_edit',
    description: 'Replace text in a file; old must match exactly and once.',
    parameters: {
      type: 'object',
      properties: { path: { type: 'string' }, old: { type: 'string' }, new: { type: 'string' } },
      required: ['path', 'old', 'new'],
      additionalProperties: false,
    },
    risk: 'medium',
    timeoutMs: 30_000,
    idempotent: false,
  },
  search: {
    name: 'search',
    description: 'Find files by glob and/or lines by regex; skips .gitignored files.',
    parameters: {
      type: 'object',
      properties: { pattern: { type: 'string' }, glob: { type: 'string' }, path: { type: 'string' } },
      additionalProperties: false,
    },
    risk: 'low',
    timeoutMs: 30_000,
    idempotent: true,
  },
  shell: {
    name: 'shell',
    description: 'Run a bash command in the workspace. No stdin.',
    parameters: {
      type: 'object',
      properties: { command: { type: 'string' }, timeout: { type: 'integer', minimum: 1 } },
      required: ['command'],
      additionalProperties: false,
    },
    risk: 'medium',
    timeoutMs: 15_000,
    idempotent: false,
  },
  http: {
    name: 'http',
    description: 'Fetch a public URL.',
    parameters: {
      type: 'object',
      properties: { url: { type: 'string' }, method: { type: 'string', enum: ['GET', 'POST'] }, body: { type: 'string' } },
      required: ['url'],
      additionalProperties: false,
    },
    risk: 'low',
    timeoutMs: 20_000,
    idempotent: false,
  },
  memory_search: {
    name: 'memory_search',
    description: 'Search past conversations by words.',
    parameters: {
      type: 'object',
      properties: { query: { type: 'string' }, limit: { type: 'integer', minimum: 1, maximum: 50 } },
      required: ['query'],
      additionalProperties: false,
    },
    risk: 'low',
    timeoutMs: 30_000,
    idempotent: true,
  },
  ask_user: {
    name: 'ask_user',
    description: 'Ask the user a question.',
    parameters: { type: 'object', properties: { question: { type: 'string' } }, required: ['question'], additionalProperties: false },
    risk: 'low',
    // People think longer than machines: ten minutes, like an approval.
    timeoutMs: 600_000,
    idempotent: false,
  },
} as const satisfies { readonly [name: string]: Described }

/** How long a command may take, in seconds: usually, and (a whole number) at most, when the call asks for its own limit. */
export type ShellTimes = { readonly usualS: number; readonly longestS: number }

/** The shell with the operator's limits in its words and its schema, so that a call cannot ask for more. */
export function shellSpec({ usualS, longestS }: ShellTimes) {
  const { description, parameters, ...rest } = specs.shell
  const { command, timeout } = parameters.properties
  return {
    ...rest,
    description: `${description.slice(0, -1)}; ${usualS} s, or timeout up to ${longestS} s.`,
    parameters: { ...parameters, properties: { command, timeout: { ...timeout, maximum: longestS } } },
    timeoutMs: usualS * 1000,
  } satisfies Described
}
