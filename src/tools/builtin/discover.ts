/** Defines the tool discover, which finds skills and documents of the project by an intent. */

import { done, type ToolKind } from '../tool-kind.ts'

/** Returns a line for each hit, the best first. */
export type Discover = (intent: string) => Promise<readonly string[]>

const parameters = {
  type: 'object',
  properties: { intent: { type: 'string' } },
  required: ['intent'],
  additionalProperties: false,
} as const

export const discover = {
  name: 'discover',
  description: 'Find skills and documents for what you are about to do. Then read the one that fits.',
  parameters,
  risk: 'low',
  timeoutMs: 30_000,
  idempotent: true,
  touches: () => [{ kind: 'path', path: '.', access: 'read' }],
  run: async ({ intent }, _context, { discover: find }) => done((await find(intent)).join('\n') || 'nothing here fits'),
} as const satisfies ToolKind<typeof parameters, { readonly discover: Discover }>

export type DiscoverKind = typeof discover
