/** Defines the tool shell_stop, which ends a command in the background. */

import type { Schema } from '../../runtime/port.ts'
import type { ToolKind } from '../tool-kind.ts'
import { type Jobs, noJobs } from './shell_output.ts'

const parameters = {
  type: 'object',
  properties: { id: { type: 'string' } },
  required: ['id'],
  additionalProperties: false,
} as const satisfies Schema

export const shellStop = {
  name: 'shell_stop',
  description: 'End a background command.',
  parameters,
  risk: 'low',
  timeoutMs: 30_000,
  idempotent: true,
  touches: () => [],
  run: async ({ id }, _context, { jobs }) => jobs?.stop(id) ?? noJobs,
} as const satisfies ToolKind<typeof parameters, { readonly jobs?: Jobs }>
