/** Lists the events that start new work; a thread that stops a run blocks all of them. */

export const beginnings = [
  { type: 'think' },
  { type: 'judge' },
  { type: 'act' },
  { type: 'apply' },
  { type: 'check' },
  { type: 'gate.open' },
] as const
