/** Every page of a control plane full of hostile texts: text stays text, and axe-core finds nothing in light, in dark and on a phone. */

import { afterAll, test as always, beforeAll, expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import type { AxeResults } from 'axe-core'
import { browserOfFile, hasBrowser } from '../../support/browser.ts'
import { isDeep } from '../../support/tier.ts'
import { type ControlUnderTest, controlServer } from '../support/control-server.ts'
import { type FilledControl, fillControl } from '../support/filled-control.ts'

const test = always.if(hasBrowser)
const open = browserOfFile()
const axe = readFileSync(Bun.fileURLToPath(import.meta.resolve('axe-core')), 'utf8')

const escapeSequence = `${String.fromCharCode(27)}]0;owned${String.fromCharCode(7)}${String.fromCharCode(27)}[2J`
const hostile = ` <img src=x onerror="window.broken=1"><script>window.broken=2</script><a href="javascript:window.broken=3">x</a> \u202egnp.exe\u2066 مرحبا ${escapeSequence} 👩‍🚀\u200b`
const long = `${'a line of sixty-four characters, which is repeated many times .\n'.repeat(1_000)}the end of it${hostile}`
/** Elements that only the hostile text could have made. */
const planted = 'main img, main script, main iframe, main svg, a[href^="javascript:"], main [onerror]'

const state: { at?: ControlUnderTest; filled?: FilledControl; longTask?: string } = {}

beforeAll(async () => {
  if (!hasBrowser) return
  state.at = await controlServer()
  state.filled = await fillControl(state.at, hostile)
  state.longTask = (await state.at.client().tasks.create({ title: `long${hostile}`, role: 'sysadmin', description: long })).task_id
})

afterAll(async () => {
  await state.at?.[Symbol.asyncDispose]()
})

/** The address, and what it shows when it has all its data. */
function pages(): readonly (readonly [path: string, shows: string])[] {
  const { filled, longTask = '' } = state
  if (!filled) throw new Error('the control plane is not there')
  return [
    ['', 'Not seen|Working on nothing|Paused'],
    ['tasks', 'long <img'],
    ['tasks?view=list', 'long <img'],
    [`tasks/${longTask}`, 'the end of it'],
    [`tasks/${filled.waitingTask}`, 'Conflict detected'],
    [`tasks/${filled.doubtfulTask}`, 'mail-week-47'],
    [`tasks/${filled.doubtfulTask}/edit`, 'Waits for|Attempts at most'],
    ['tasks/new', 'Create the task'],
    ['runs', 'changes|waiting'],
    [`runs/${filled.runId}`, 'clawdie-db ✓'],
    ['agents', 'waits for the new disk'],
    ['agents/sysadmin', 'jail-status'],
    ['budget', 'Daily limits'],
    ['schedules', 'nightly-vacuum'],
    ['audit', 'task.created'],
    ['operators', 'environment'],
  ]
}

const everyLook = [
  { name: 'light', rules: 'axe.run()', colorScheme: 'light', viewport: { width: 1200, height: 800 } },
  // Only colours differ from the light page.
  { name: 'dark', rules: `axe.run({ runOnly: ['color-contrast'] })`, colorScheme: 'dark', viewport: { width: 1200, height: 800 } },
  { name: 'phone', rules: 'axe.run()', colorScheme: 'light', viewport: { width: 360, height: 740 } },
] as const

const looks = isDeep ? everyLook : everyLook.slice(0, 1)
/** In the fast tier axe-core looks at these alone, because it takes longer than all else; the texts are looked at on every page. */
const examples = ['tasks/new', 'budget']

for (const { name, rules, ...look } of looks)
  test(`all pages: ${name}`, async () => {
    if (!state.at) throw new Error('the control plane is not there')
    const { url, operator } = state.at
    await using visited = await open({ url, token: operator }, look)
    const { page, complaints } = visited
    const loaded: string[] = []
    page.on('request', (request) => loaded.push(request.url()))
    await page.evaluate(axe)
    const wrong: unknown[] = []
    for (const [path, shows] of pages()) {
      await page.evaluate(`location.hash = ${JSON.stringify(`#/${path}`)}`)
      await page.locator('main').getByText(new RegExp(shows)).first().waitFor({ state: 'attached' })
      await page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
      await page.waitForTimeout(80)
      const { violations } = isDeep || examples.includes(path) ? await page.evaluate<AxeResults>(rules) : { violations: [] }
      const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`)
      const overflow = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
      const elements = await page.locator(planted).count()
      if (found.length > 0 || overflow !== 0 || elements > 0) wrong.push([path, found, overflow, elements])
    }
    expect(wrong).toEqual([])
    expect(await page.evaluate('window.broken')).toBeUndefined()
    expect(loaded.filter((each) => !each.startsWith(url))).toEqual([])
    expect(complaints).toEqual([])
  }, 120_000)

test('what would hide or turn text around is shown by its number, and an address that somebody sends is only a page', async () => {
  if (!state.at) throw new Error('the control plane is not there')
  const { url, operator } = state.at
  await using visited = await open({ url, token: operator }, { at: '' })
  const { page, complaints } = visited
  const operation = page.locator('[data-mark^="approval "] strong')
  await operation.waitFor()
  expect(await operation.innerText()).toBe(
    'Merge PR #42 with conflict resolution <img src=x onerror="window.broken=1"><script>window.broken=2</script><a href="javascript:window.broken=3">x</a> ⟨202e⟩gnp.exe⟨2066⟩ مرحبا ⟨1b⟩]0;owned⟨07⟩⟨1b⟩[2J 👩‍🚀⟨200b⟩',
  )
  for (const place of [
    'tasks/TASK-../../x',
    'tasks/TASK-999999',
    'runs/RUN-%2f..',
    `agents/${encodeURIComponent(hostile)}`,
    `tasks?q=${hostile}`,
    'nowhere',
  ]) {
    await page.evaluate(`location.hash = ${JSON.stringify(`#/${place}`)}`)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.waitForTimeout(60)
    expect(await page.locator(planted).count()).toBe(0)
  }
  expect(await page.evaluate('window.broken')).toBeUndefined()
  expect(complaints).toEqual([])
})
