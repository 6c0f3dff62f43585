/** Claude Code itself as a client of `mcp serve`: it lists the tools, calls one, and is denied another. */

import { afterEach, describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { claudeRunner } from '../../src/control/runners/foreign-runners.ts'
import { hasForeign, longestMs, runForeign } from '../control/foreign/foreign-run.ts'
import { createVendor } from '../control/foreign/looping-vendor.ts'
import { startMetered } from '../control/llm/metered-server.ts'
import { executable, type Nest } from '../support/cli.ts'
import { home } from '../support/turns.ts'

const running: { stop(): void }[] = []
afterEach(() => {
  for (const one of running.splice(0)) one.stop()
})

async function run(at: Nest, tool: string, input: object) {
  const vendor = createVendor({ tool, input })
  const metered = startMetered(vendor.answer)
  running.push(metered)
  const started = ['-i', ...Object.entries(at.env).map(([name, value]) => `${name}=${value}`), executable]
  const mcpServer = { command: 'env', args: [...started, 'mcp', 'serve', '-C', at.workspace, '--autonomy', 'readonly'] }
  const ran = await runForeign(claudeRunner({ support: { mcpServer } }), {
    ...{ apiUrl: metered.origin, prompt: 'go', skillIndex: '', model: 'model-1' },
  })
  const { stdout } = await at.run(['receipt', 'list', '--json'])
  const receipts: readonly { readonly tool: string; readonly status: string }[] = JSON.parse(stdout)
  return { asked: vendor.paid, events: ran.events, receipts: receipts.map((each) => `${each.tool} ${each.status}`) }
}

describe('claude', () => {
  test.if(hasForeign('claude'))(
    'sees the tools, and reads a file through the gate',
    async () => {
      using at = home()
      at.file('notes.md', 'rhododendron\n')
      const { asked, events, receipts } = await run(at, 'file_read', { path: 'notes.md' })
      expect(events.findLast(({ type }) => type === 'result')).toMatchObject({ ok: true, output: 'All done.' })
      for (const name of ['file_read', 'agent_turn', 'receipts_verify']) expect(asked.at(-1)?.text).toContain(`mcp__skills__${name}`)
      expect(asked.at(-1)?.text).toContain('rhododendron')
      expect(receipts).toEqual(['file_read allowed'])
    },
    longestMs,
  )

  test.if(hasForeign('claude'))(
    'is told why a call is denied, and nothing happens',
    async () => {
      using at = home()
      const { asked, receipts } = await run(at, 'file_write', { path: 'new.txt', content: 'x' })
      expect(asked.at(-1)?.text).toContain('readonly')
      expect([receipts, existsSync(join(at.workspace, 'new.txt'))]).toEqual([['file_write denied'], false])
    },
    longestMs,
  )
})
