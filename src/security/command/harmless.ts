/** Recognises the few commands that only print; they may run at every level of autonomy, even without a sandbox. */

import type { CommandVerdict } from './verdict.ts'

/** The command only prints: `pwd`, `date`, `true`, `echo` with literal words, run without a shell and without writing. */
export function isHarmless({ verdict, risk, plan, writes }: CommandVerdict): boolean {
  if (verdict !== 'run' || risk !== 'medium' || plan?.kind !== 'argv' || writes.length > 0) return false
  const [name = '', ...args] = plan.argv
  switch (name) {
    case 'pwd':
      return args.every((arg) => arg === '-P' || arg === '-L')
    case 'true':
      return args.length === 0
    case 'date':
      return args.every((arg) => /^(\+.*|-u|--utc|-R|-I(seconds|minutes|hours|date)?)$/.test(arg))
    case 'echo':
      return true
    default:
      return false
  }
}
