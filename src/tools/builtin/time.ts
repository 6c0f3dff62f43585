/** time: what a clock on the wall here and in Greenwich shows. */

import type { Clock, Tool } from '../../runtime/port.ts'
import { done } from '../input.ts'
import { specs } from '../specs.ts'

export function timeTool({ now, timeZone }: { readonly now: Clock; readonly timeZone?: string }): Tool {
  return {
    ...specs.time,
    touches: () => [],
    async invoke() {
      const zone = timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone
      const at = new Date(now())
      return done(`local: ${local(at, zone)}\nutc: ${at.toISOString()}\ntimezone: ${zone}`)
    },
  }
}

function local(at: Date, timeZone: string): string {
  return new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'long' }).format(at)
}
