/** Defines the tool time, which tells the current local time and UTC. */

import { objectSchema } from '../../kit/json.ts'
import type { Clock } from '../../runtime/port.ts'
import { done, type ToolKind } from '../tool-kind.ts'

const parameters = objectSchema({})

export const time = {
  name: 'time',
  description: 'Current local and UTC time.',
  parameters,
  risk: 'low',
  timeoutMs: 30_000,
  idempotent: true,
  touches: () => [],
  async run(_args, _context, { now, timeZone }) {
    const zone = timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone
    const at = new Date(now())
    return done(`local: ${local(at, zone)}\nutc: ${at.toISOString()}\ntimezone: ${zone}`)
  },
} as const satisfies ToolKind<typeof parameters, { readonly now: Clock; readonly timeZone?: string }>

function local(at: Date, timeZone: string): string {
  return new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'long' }).format(at)
}
