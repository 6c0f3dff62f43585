/** A person at a terminal: `/wiggum` in a conversation, and the question about a result that needs a yes. */

import { test as always, expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../support/needs.ts'
import { call, check, mend, mended, project, said } from './wiggum.fixture.ts'

always.if(needs('bwrap'))(
  '/wiggum works until the check passes, and a yes applies what needs one',
  async () => {
    using made = project()
    const env = { BRAIDCLAW_MOCK_FIXTURE: made.fixture([said(), { tool_calls: [mend] }, said('mended')]) }
    const typed = [
      ['> ', `/wiggum --check '${check}' mend it\r`],
      ['run report', '/exit\r'],
    ] as const
    const talk = await made.terminal(['agent'], typed, { env })
    expect([talk.code, readFileSync(join(made.workspace, 'src/lib.sh'), 'utf8')]).toEqual([0, mended])
    const recipe = [{ tool_calls: [call('file_write', { path: 'Makefile', content: 'all:\n' })] }, said('made')]
    const words = ['agent', '--wiggum', '--check', 'test -e Makefile', 'make it']
    const asked = await made.terminal(words, [['[y/N', 'y\r']], { env: { BRAIDCLAW_MOCK_FIXTURE: made.fixture(recipe) } })
    expect([asked.code, asked.stdout]).toEqual([0, expect.stringContaining('the result needs a yes: "Makefile"')])
    expect(readFileSync(join(made.workspace, 'Makefile'), 'utf8')).toBe('all:\n')
  },
  60_000,
)
