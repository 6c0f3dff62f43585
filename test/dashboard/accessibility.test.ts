/** Every page of the dashboard, full of data, in light and dark and at the width of a phone: no violation that axe-core knows. */

import { afterAll, test as always, expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import type { AxeResults } from 'axe-core'
import { browserOfFile, hasBrowser } from '../support/browser.ts'
import { type FilledHome, filledHome } from '../support/filled-home.ts'
import type { Gateway } from '../support/gateway.ts'
import { isDeep } from '../support/tier.ts'

const test = always.if(hasBrowser)
const open = browserOfFile()
const state: { home?: Promise<FilledHome> } = {}
const axe = readFileSync(Bun.fileURLToPath(import.meta.resolve('axe-core')), 'utf8')

afterAll(async () => {
  await using _ = await state.home
})

const looks = [
  { name: 'light', colorScheme: 'light', width: 1200, height: 800 },
  { name: 'dark', colorScheme: 'dark', width: 1200, height: 800 },
  { name: 'on a phone', colorScheme: 'light', width: 360, height: 740 },
] as const

/** The page, and what it shows when it has all its data. CONVERSATION and RUN stand for the first ones. */
const pages: readonly (readonly [path: string, shows: string])[] = [
  ['', 'This home'],
  ['talk/CONVERSATION', 'Rename'],
  ['runs', 'approval needed'],
  ['runs/RUN', 'Correct the typo in the notes'],
  ['memory/typo notes', 'Open the conversation'],
  ['tools', 'Commands that never run'],
  ['servers', 'never asked'],
  ['schedules', 'Add a schedule'],
  ['procedures', 'cron 0 9 * * mon'],
  ['procedures/release', 'Run it'],
  ['procedures/PROCEDURE', 'A procedure asks'],
  ['cost', 'anthropic/claude-sonnet-4-5'],
  ['proof', 'file_list'],
]

/** The fast tier looks at the page that has most of the elements. */
for (const [path, shows] of isDeep ? pages : pages.slice(1, 2))
  test(`the page "${path || 'now'}" in light, in dark and on a phone`, async () => {
    state.home ??= filledHome()
    const { server } = await state.home
    await using visit = await open(server, { at: await addressOf(server, path) })
    const { page, complaints } = visit
    await page.getByText(shows).first().waitFor()
    // What is folded counts too.
    await page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    await page.evaluate(axe)
    for (const { name, colorScheme, ...size } of looks) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      await page.setViewportSize(size)
      await page.waitForTimeout(150)
      const { violations } = await page.evaluate<AxeResults>('axe.run()')
      const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`)
      const overflow = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
      expect([name, found, overflow]).toEqual([name, [], 0])
    }
    expect(complaints).toEqual([])
  }, 120_000)

async function addressOf({ ask }: Gateway, path: string): Promise<string> {
  const [conversations, runs] = [(await ask('/conversations')).body.conversations, (await ask('/runs')).body.runs]
  const run = runs.find(({ prompt }: { prompt?: string }) => prompt === 'Correct the typo in the notes')
  const [procedure] = (await ask('/sops/runs')).body.runs
  return path.replace('PROCEDURE', procedure.id).replace('CONVERSATION', conversations.at(-1).id).replace('RUN', run.id)
}
