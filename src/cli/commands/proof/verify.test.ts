import { expect, test } from 'bun:test'
import { verifyProgram } from '../../../runtime/verify/verify-program.ts'
import { verifyLines } from './verify.ts'

test('a broken property shows the way there, numbered, and on what a hanging run hangs', () => {
  const stranding = { name: 'stranding', priority: 15, init: null, bid: () => ({ block: [{ type: 'act' as const }] }), next: () => null }
  const lines = verifyLines(verifyProgram({ rules: [stranding], without: ['watchdog'] }), ['stranding'])
  expect(lines).toContain(
    '✗ P8  A run at rest that is not over waits for a model, a tool, a check or an open gate, and would take the answer; it is not ended as stalled meanwhile.',
  )
  expect(lines.slice(-5)).toEqual([
    '  1. run.start, from outside',
    '  2. think, round 1, asked by loop',
    '  3. model.done with a1 file_read (allow, low), from outside',
    '  4. propose a1, asked by calls',
    '  and then: held back: act a1 by stranding',
  ])
})

test('a search that was cut decides nothing, and a program that does nothing is not praised', () => {
  const lines = verifyLines(verifyProgram({ bounds: { maxStates: 5 } }), [])
  expect(lines.some((line) => line.startsWith('✓'))).toBe(false)
  expect(lines).toContain('warning: in no run does the model answer; what "never happens" then says little')
})
