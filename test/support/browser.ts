/** Opens the dashboard of a test gateway in real headless Chromium, and collects whatever the browser complains about. */

import { afterAll } from 'bun:test'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import type { Gateway } from './gateway.ts'
import { needs } from './needs.ts'

export const hasBrowser = needs('chromium')

export type Visit = AsyncDisposable & {
  readonly page: Page
  /** Errors of scripts, violations of the content security policy, and everything else that the console calls an error. */
  readonly complaints: readonly string[]
}

export type VisitOptions = BrowserContextOptions & {
  /** Logs in with this token before the page loads; absent: the token of the gateway. null: nobody is logged in. */
  readonly token?: string | null
  /** The part of the address after "#/". */
  readonly at?: string
}

/** How long anything in the page may take, in ms. */
const patience = 30_000

/** Starts one browser for the tests of a file, with the first visit; it ends with the last test. */
export function browserOfFile(): (server: Pick<Gateway, 'url' | 'token'>, options?: VisitOptions) => Promise<Visit> {
  const state: { browser?: Promise<Browser> } = {}
  afterAll(async () => (await state.browser)?.close())
  return async (server, options = {}) => {
    state.browser ??= chromium.launch({ executablePath: '/usr/bin/chromium', args: process.getuid?.() === 0 ? ['--no-sandbox'] : [] })
    return visit(await state.browser, server, options)
  }
}

async function visit(browser: Browser, server: Pick<Gateway, 'url' | 'token'>, options: VisitOptions): Promise<Visit> {
  const { token = server.token, at = '', ...rest } = options
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, reducedMotion: 'reduce', ...rest })
  context.setDefaultTimeout(patience)
  if (token !== null)
    await context.addCookies([{ ...(await sessionOf(server.url, token)), url: server.url, httpOnly: true, sameSite: 'Strict' }])
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('console', (message) => {
    // An answer that is no 200 is not an error of the page; the page shows it.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) complaints.push(message.text())
  })
  await page.addInitScript(
    `addEventListener('securitypolicyviolation', (event) => console.error('violation: ' + event.effectiveDirective + ' ' + event.blockedURI))`,
  )
  await page.goto(`${server.url}/#/${at}`)
  return { page, complaints, [Symbol.asyncDispose]: () => context.close() }
}

/** Exchanges the token for the cookie of a session, as the page does. */
async function sessionOf(url: string, token: string): Promise<{ readonly name: string; readonly value: string }> {
  const body = JSON.stringify({ token })
  const answer = await fetch(`${url}/session`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  const [, name, value] = /^([^=]+)=([^;]+)/.exec(answer.headers.get('set-cookie') ?? '') ?? []
  if (name === undefined || value === undefined) throw new Error(`the gateway does not take the token: ${answer.status}`)
  return { name, value }
}

/** Says something in the conversation that the page shows. */
export async function say(page: Page, text: string): Promise<void> {
  await page.getByLabel('Message').fill(text)
  await page.getByLabel('Message').press('Enter')
}
