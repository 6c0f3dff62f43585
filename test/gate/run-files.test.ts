/** An approval of make, npm or a script that works on the workspace itself covers the files it would run as they are, and no other content. */

import { test as always, describe, expect } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../support/needs.ts'
import { alone, call, home, turn } from '../support/turns.ts'

const confined = always.if(needs('bwrap'))

const cases = [
  ['make', 'Makefile', 'all:\n\techo good > made\n'],
  ['make', 'rules.mk', 'all:\n\techo good > made\n'],
  ['npm run x', 'package.json', '{"scripts":{"x":"echo good > made"}}'],
  ['bash x.sh', 'x.sh', 'echo good > made\n'],
  ['python3 x.py', 'x.py', 'open("made", "w").write("good")\n'],
] as const

describe('a file that was swapped while the question stood', () => {
  confined.each(cases)('%s, %s: runs nothing', async (command, file, text) => {
    for (const swapped of file === 'Makefile' ? [true, false] : [true]) {
      using at = home()
      if (file === 'rules.mk') at.file('Makefile', 'include rules.mk\n')
      at.file(file, text)
      const script = [call('shell', { command, direct: true }), { text: 'So: {{last_tool_result}}' }]
      const first = await turn(at, script, [], { through: alone })
      const [, id = ''] = /braidclaw approvals allow (\S+),/.exec(first.stderr) ?? []
      expect([first.code, id]).toEqual([4, expect.stringContaining('/')])
      expect((await at.run(['approvals', 'allow', id])).code).toBe(0)
      if (swapped) at.file(file, `${text}\n `)
      const again = await turn(at, script, ['-c'], { through: alone })
      expect([command, swapped, again.code, existsSync(join(at.workspace, 'made'))]).toEqual([command, swapped, swapped ? 4 : 0, !swapped])
    }
  })
})
