#!/usr/bin/env bun
/** Makes the pictures of docs/dashboard.md and docs/control-dashboard.md: each page over a filled home or control plane, in real Chromium. Run by hand; `--all`: also dark and phone; `--control`: only those of the control plane. */

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { type ControlUnderTest, controlServer } from '../test/control/support/control-server.ts'
import { type FilledControl, fillControl } from '../test/control/support/filled-control.ts'
import { filledHome } from '../test/support/filled-home.ts'
import type { Gateway } from '../test/support/gateway.ts'

const pages = ['now', 'talk', 'runs', 'memory', 'tools', 'servers', 'schedules', 'procedures', 'cost', 'proof'] as const
const looks = [
  { name: '', colorScheme: 'light', viewport: { width: 1100, height: 760 } },
  { name: '-dark', colorScheme: 'dark', viewport: { width: 1100, height: 760 } },
  { name: '-phone', colorScheme: 'light', viewport: { width: 390, height: 844 } },
] as const

if (import.meta.main) await main(Bun.argv.slice(2))

async function main(args: readonly string[]): Promise<void> {
  const docs = args.find((arg) => !arg.startsWith('--')) ?? join(import.meta.dir, '../docs')
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: process.getuid?.() === 0 ? ['--no-sandbox'] : [] })
  const wanted = args.includes('--all') ? looks : looks.slice(0, 1)
  const whole = args.includes('--whole')
  if (!args.includes('--control')) {
    await using filled = await filledHome()
    for (const look of wanted) await pictures(browser, filled.server, { ...look, folder: made(docs, 'dashboard'), whole })
  }
  await using control = await controlServer()
  const filled = await fillControl(control)
  for (const look of wanted) await controlPictures(browser, control, { ...look, filled, folder: made(docs, 'control-dashboard'), whole })
  await browser.close()
}

function made(docs: string, name: string): string {
  mkdirSync(join(docs, name), { recursive: true })
  return join(docs, name)
}

type Look = Omit<(typeof looks)[number], 'name' | 'viewport' | 'colorScheme'> & {
  readonly name: string
  readonly colorScheme: 'light' | 'dark'
  readonly viewport: { readonly width: number; readonly height: number }
  readonly folder: string
  /** The whole length of each page instead of what the window shows. */
  readonly whole: boolean
}

async function pictures(browser: Browser, { url, token, ask }: Gateway, { name, folder, whole, ...look }: Look): Promise<void> {
  const context = await loggedIn(browser, { url, token }, look)
  const page = await context.newPage()
  const { conversations } = (await ask('/conversations')).body
  const titled = conversations.find(({ title }: { title: string }) => title.startsWith('What changed'))
  const { runs } = (await ask('/runs')).body
  const typo = runs.find(({ prompt = '' }: { prompt?: string }) => prompt.startsWith('Correct'))
  const places: { readonly [page: string]: string } = {
    now: '',
    talk: `talk/${titled?.id ?? ''}`,
    runs: `runs/${typo?.id ?? ''}`,
    memory: 'memory/typo notes',
    procedures: `procedures/${(await ask('/sops/runs')).body.runs[0]?.id ?? ''}`,
  }
  for (const each of pages) {
    await page.goto(`${url}/#/${places[each] ?? each}`)
    await page.reload()
    await page.getByRole('navigation', { name: 'Pages' }).waitFor()
    await page.waitForTimeout(700)
    if (each === 'tools') {
      await page.getByLabel('The command').fill('git push --force origin main')
      await page.getByRole('button', { name: 'Explain' }).click()
      await page.locator('.card .facts').first().waitFor()
    }
    if (each === 'servers') {
      await page.getByText('What is not approved').first().click()
      await page.getByText('sends the others').last().waitFor()
    }
    if (each === 'proof') {
      await page.getByRole('button', { name: 'Verify now' }).click()
      await page.getByText('The record').first().waitFor()
      await page.getByRole('button', { name: 'Show the line' }).click()
      await page.getByRole('button', { name: 'Copy it' }).waitFor()
    }
    await keep(page, { file: join(folder, `${each}${name}.png`), whole })
  }
  await context.close()
}

async function loggedIn(
  browser: Browser,
  { url, token }: Pick<Gateway, 'url' | 'token'>,
  look: Pick<Look, 'colorScheme' | 'viewport'>,
): Promise<BrowserContext> {
  const context = await browser.newContext({ ...look, locale: 'en-GB', timezoneId: 'Europe/Berlin', reducedMotion: 'reduce' })
  const session = await context.request.post(`${url}/session`, { data: { token }, headers: { origin: url } })
  if (!session.ok()) throw new Error(await session.text())
  return context
}

/** A palette makes a third of the bytes, and nobody sees the difference. */
async function keep(page: Page, { file, whole }: { readonly file: string; readonly whole: boolean }): Promise<void> {
  await page.evaluate('scrollTo(0, 0)')
  const picture = await page.screenshot({ fullPage: whole })
  await Bun.write(file, await new Bun.Image(picture).png({ palette: true }).bytes())
}

async function controlPictures(
  browser: Browser,
  { url, operator }: Pick<ControlUnderTest, 'url' | 'operator'>,
  { name, folder, whole, filled, ...look }: Look & { readonly filled: FilledControl },
): Promise<void> {
  const context = await loggedIn(browser, { url, token: operator }, look)
  const page = await context.newPage()
  const places = {
    ...{ now: '', tasks: 'tasks', task: `tasks/${filled.waitingTask}`, runs: `runs/${filled.runId}` },
    ...{ agents: 'agents', budget: 'budget', audit: 'audit' },
  }
  for (const [each, place] of Object.entries(places)) {
    await page.goto(`${url}/#/${place}`)
    await page.reload()
    await page.getByRole('navigation', { name: 'Pages' }).waitFor()
    await page.waitForTimeout(700)
    await keep(page, { file: join(folder, `${each}${name}.png`), whole })
  }
  await context.close()
}
