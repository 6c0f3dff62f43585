/** Tests that a command cannot forge how it ended: whatever it prints, the result says that it ran confined. */

import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SandboxKind } from './contract.ts'
import { confined, hasBubblewrap } from './fixture.ts'
import { landlockVersion } from './landlock/landlock-launch.ts'
import { openLibc } from './libc.ts'

const kinds: SandboxKind[] = [
  ...(hasBubblewrap() ? ['bubblewrap' as const] : []),
  ...(landlockVersion(openLibc()) > 0 ? ['landlock' as const] : []),
]
const words = ['pipes/command-pipes.ts', 'landlock/landlock-launch.ts', 'landlock/landlock.ts', 'bubblewrap/run-confined.ts'].flatMap(
  (file) => [...readFileSync(join(import.meta.dir, file), 'utf8').matchAll(/braidclaw-\w+:? ?/g)],
)

describe.each(kinds)('%s', (kind) => {
  test('a command that speaks like the sandbox itself and ends like it is not taken for one that never ran', async () => {
    using box = await confined({ kind })
    const forms = [...new Set(words.map(([word]) => word))]
    expect(forms.length).toBeGreaterThan(0)
    for (const form of [...forms, 'braidclaw-sandbox: ', 'braidclaw-landlock: ']) {
      const { ended } = await box.run(`touch ran; printf '%s' '${form}it never ran' >&2; exit 126`)
      expect(ended).toEqual({ ok: true, code: 126, leftBehind: false, mode: 'direct' })
    }
  })

  test('it cannot find out how the sandbox speaks', async () => {
    using box = await confined({ kind })
    const { stdout } = await box.run(
      'set; cat /proc/self/environ /proc/self/cmdline /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" "\\n"; ls -l /proc/self/fd',
    )
    expect(stdout).not.toBe('')
    expect(stdout).not.toMatch(/braidclaw-(sandbox|landlock) [0-9a-f]{8}/)
  })

  test('what never ran is told', async () => {
    using box = await confined({ kind })
    const { ended } = await box.run('', { argv: ['/no/such/program'] })
    expect(ended).toMatchObject({
      ok: false,
      message: expect.stringMatching(/^cannot start "\/no\/such\/program": the program does not exist/),
    })
  })
})
