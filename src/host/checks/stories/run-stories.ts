/** Runs the stories of a project in headless Chromium: bundled in the sandbox, shown without a network, each in a page of its own. */

import { chmodSync, mkdirSync } from 'node:fs'
import { extname, join } from 'node:path'
import type { Browser, Page, Route } from 'playwright-core'
import { within } from '../../../kit/abort.ts'
import { errorText } from '../../../kit/errors.ts'
import { sha256 } from '../../../kit/sha256.ts'
import { findChromium, openBrowser } from '../../../sandbox/bubblewrap/chromium.ts'
import { isCompiled } from '../../../service/own-program.ts'
import { cleanEnvironment } from '../../../tools/process.ts'
import { policyOf } from '../../setup/effective-policy.ts'
import { createConfinement } from '../../toolset/sandbox/command-sandbox.ts'
import { type Attempt, type CheckContext, type CheckSpec, notRun } from '../contract.ts'
import type { BundledStories } from './bundle-stories.ts'
import { type Act, storyPage } from './story-page.ts'

const [usualMs, loadMs, mostBytes] = [120_000, 10_000, 64 * 1024 * 1024]
const origin = 'http://stories.invalid'

/** @throws Error when Chromium does not start */
export async function runStories(spec: CheckSpec & { readonly stories: string }, on: CheckContext): Promise<Attempt> {
  const { stories, timeoutMs = usualMs } = spec
  const path = findChromium(on.setup.context.env)
  if (path === undefined) return notRun('stories need Chromium, and none is here; install it, or set CHROMIUM to its absolute path')
  const signal = AbortSignal.any([AbortSignal.timeout(timeoutMs), ...(on.signal ? [on.signal] : [])])
  const bundles = await bundle(stories, on, signal)
  if (typeof bundles === 'string') return notRun(bundles)
  if (bundles.length === 0) return notRun(`no file matches ${JSON.stringify(stories)}`)
  const browser = await openBrowser(path)
  const stop = () => void closed(browser)
  signal.addEventListener('abort', stop, { once: true })
  try {
    const ends: StoryEnd[] = []
    const run = { browser, limitMs: Math.min(loadMs, timeoutMs / 10), folder: folderOf(on) }
    for (const each of bundles) ends.push(...(await storiesOf(each, run)))
    if (on.signal?.aborted) return notRun('cancelled')
    const late = signal.aborted ? [`they took longer than ${timeoutMs / 1_000} s`] : []
    const bad = ends.filter(({ problem }) => problem !== '')
    const heading = `${ends.length - bad.length} of ${ends.length} stories passed`
    const found = bad.flatMap(({ name, problem, details }) => [`\n${name}: ${problem}`, ...details])
    const files = ends.flatMap(({ name, shot }) => (shot === undefined ? [] : [{ name, path: shot }]))
    return { pass: bad.length + late.length === 0, evidence: [heading, ...late, ...found].join('\n'), files }
  } finally {
    signal.removeEventListener('abort', stop)
    await closed(browser)
  }
}

async function closed(open: { close(): Promise<void> }): Promise<void> {
  await within(
    3_000,
    open.close().catch(() => {}),
  )
}

/** Bundling executes macros of the project, so it is confined as a command is; the view is dropped. @returns why it did not run */
async function bundle(stories: string, { setup, sandbox = 'auto' }: CheckContext, signal: AbortSignal) {
  const policy = policyOf(setup.config, setup.paths, setup.context.env)
  const confinement = createConfinement(sandbox, { setup, policy })
  const module = join(import.meta.dir, `bundle-stories${extname(import.meta.path)}`)
  const script = `console.log(await (await import(${JSON.stringify(module)})).bundleStories())`
  const own = isCompiled() ? ['__stories'] : ['--config=/dev/null', '--no-env-file', '--no-install', '-e', script]
  const printed = { stdout: '', stderr: '' }
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
  try {
    const ended = await confinement.spawn({
      argv: [process.execPath, ...own],
      cwd: policy.workspace,
      env: cleanEnvironment({ home: policy.workspace }),
      stdin: JSON.stringify({ stories, page: `{ ${Object.values(storyPage).join(',\n')} }` }),
      readablePaths: [process.execPath, ...(isCompiled() ? [] : [module])].map((readable) => ({ path: readable })),
      view: 'private',
      signal,
      onOutput(chunk, from) {
        if (printed[from].length < mostBytes) printed[from] += decoders[from].decode(chunk, { stream: true })
      },
    })
    if (!ended.ok) return ended.message
    ended.view?.drop()
    if (ended.code !== 0) return `the stories could not be bundled: ${printed.stderr.slice(-2_000) || `exit code ${ended.code}`}`
    return printed.stdout.split('\n').flatMap((line): BundledStories[] => (line === '' ? [] : [JSON.parse(line)]))
  } finally {
    confinement.close()
  }
}

type StoryRun = { readonly browser: Browser; readonly limitMs: number; readonly folder: string }

/** `problem`: why it failed, or empty. `shot`: its picture. */
type StoryEnd = { readonly name: string; readonly problem: string; readonly details: readonly string[]; readonly shot?: string }

/** Runs the stories of one file. Never rejects. */
async function storiesOf(bundled: BundledStories, run: StoryRun): Promise<readonly StoryEnd[]> {
  const { file } = bundled
  if ('error' in bundled) return [{ name: file, problem: `it could not be bundled: ${bundled.error}`, details: [] }]
  const listed = await onPage({ ...run, limitMs: loadMs }, bundled, { name: file, call: 'names()' })
  if (listed.problem !== '') return [listed]
  const ends: StoryEnd[] = []
  for (const story of listed.value as string[]) {
    const name = `${file} › ${story}`
    const shot = join(run.folder, `${sha256(name).slice(0, 16)}.png`)
    const end = await onPage(run, bundled, { name, call: `run(${JSON.stringify(story)})`, shot })
    ends.push({ ...end, problem: end.problem || String(end.value) })
  }
  return ends
}

type Bundle = Extract<BundledStories, { code: string }>
type PageCall = { readonly name: string; readonly call: string; readonly shot?: string }

/** Opens a page that reaches nothing but its bundle, and closes it, whatever it does. */
async function onPage({ browser, limitMs }: StoryRun, bundled: Bundle, { name, call, shot }: PageCall) {
  const [said, uncaught]: [string[], string[]] = [[], []]
  const say = (text: string) => void (said.length < 20 && said.push(text.slice(0, 500)))
  const context = await browser.newContext({ viewport: { width: 800, height: 600 }, reducedMotion: 'reduce', serviceWorkers: 'block' })
  try {
    const page = await context.newPage()
    page.setDefaultTimeout(2_000)
    page.on('console', (message) => message.type() === 'error' && say(`console: ${message.text()}`))
    page.on('pageerror', (error) => void uncaught.push(`uncaught: ${error.message.slice(0, 500)}`))
    await context.exposeFunction('__act', acting(page))
    await context.route('**/*', answering(bundled, say))
    const asked = async () => {
      await page.goto(`${origin}/`, { timeout: loadMs })
      await page.waitForFunction('globalThis.__stories', undefined, { timeout: loadMs })
      const value = await within(limitMs, page.evaluate<unknown>(`__stories.${call}`))
      return { value, problem: value === undefined ? `it did not end within ${limitMs / 1_000} s` : '' }
    }
    const failed = (error: unknown) => ({ value: undefined, problem: errorText(error).split('\n')[0] ?? '' })
    const { value, problem } = await asked().catch(failed)
    const tree = await page
      .locator('#root')
      .ariaSnapshot()
      .catch(() => '')
    const taken =
      shot &&
      (await page.screenshot({ path: shot, animations: 'disabled' }).then(
        () => shot,
        () => '',
      ))
    if (taken) chmodSync(taken, 0o600)
    const details = [...uncaught, ...said, ...(tree ? [`page:\n${tree}`] : [])]
    return { name, value, problem: uncaught[0] ?? problem, details, ...(taken && { shot: taken }) }
  } catch (error) {
    return { name, value: undefined, problem: errorText(error), details: said }
  } finally {
    await closed(context)
  }
}

/** Answers the first request for the page, and those for its bundle; all others fail. */
function answering({ css, code }: Bundle, say: (text: string) => void): (route: Route) => Promise<void> {
  const style = css.replaceAll('</style', '<\\/style')
  const head = `<!doctype html><meta charset="utf-8"><title>story</title><style>${style}</style>`
  const pages = [`${head}<div id="root"></div><script type="module" src="/bundle.js"></script>`]
  return (route) => {
    const url = route.request().url()
    if (url === `${origin}/bundle.js`) return route.fulfill({ contentType: 'text/javascript', body: code })
    const body = url === `${origin}/` ? pages.pop() : undefined
    if (body !== undefined) return route.fulfill({ contentType: 'text/html', body })
    say(`not reached: ${url}`)
    return route.abort()
  }
}

/** Sends real input to the element, as a person would. */
function acting(page: Page): Act {
  return async (kind, at, value) => {
    const element = (await page.evaluateHandle(`__targets[${Number(at)}]`)).asElement()
    if (element === null) throw new Error(`userEvent.${kind} needs an element`)
    if (kind === 'type') return element.click().then(() => page.keyboard.type(value))
    if (kind === 'clear') return element.fill('')
    if (kind === 'press') return element.press(value)
    if (kind === 'selectOptions') return void (await element.selectOption(value))
    if (kind === 'click' || kind === 'dblclick' || kind === 'hover') return element[kind]()
  }
}

/** Returns one folder for each workspace, so that the pictures of the next run replace those of this one. */
function folderOf({ setup: { paths, config } }: CheckContext): string {
  const folder = join(paths.home, 'stories', sha256(config.workspaceDir).slice(0, 16))
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  return folder
}
