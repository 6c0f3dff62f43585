/** Defines the tools discover, which finds skills and documents of the project by an intent, and skill, which reads a skill. */

import { objectSchema } from '../../kit/json.ts'
import type { Schema, ToolResult } from '../../runtime/port.ts'
import { done, type ToolKind } from '../tool-kind.ts'

export type ProjectDeps = {
  /** Returns a line for each hit, the best first. */
  readonly discover: (intent: string) => Promise<readonly string[]>
  /** Returns the text of a skill or of one of its files, or why there is none. */
  readonly skill: (name: string) => Promise<ToolResult>
}

export type ProjectTool = ToolKind<Schema, ProjectDeps>

const parameters = objectSchema({ intent: { type: 'string' } }, 'intent')

export const discover = {
  name: 'discover',
  description: 'Find skills and documents for what you are about to do. Then read the one that fits.',
  parameters,
  risk: 'low',
  timeoutMs: 30_000,
  idempotent: true,
  touches: () => [{ kind: 'path', path: '.', access: 'read' }],
  run: async ({ intent }, _context, { discover: find }) => done((await find(intent)).join('\n') || 'nothing here fits'),
} as const satisfies ToolKind<typeof parameters, ProjectDeps>

const named = objectSchema({ name: { type: 'string' } }, 'name')

export const skill = {
  name: 'skill',
  description: 'Read a skill by its name before you do such work; NAME/FILE reads a file of it.',
  parameters: named,
  risk: 'low',
  timeoutMs: 30_000,
  idempotent: true,
  touches: () => [],
  run: async ({ name }, _context, { skill: read }) => await read(name),
} as const satisfies ToolKind<typeof named, ProjectDeps>
