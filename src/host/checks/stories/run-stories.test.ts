import { afterAll, beforeAll, expect, test } from 'bun:test'
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { place } from '../../../../test/support/host.ts'
import { needs } from '../../../../test/support/needs.ts'
import { isDeep } from '../../../../test/support/tier.ts'
import type { Host } from '../../api.ts'
import { runCheck } from '../check.ts'
import type { CheckResult } from '../contract.ts'

const browser = test.if(needs('bwrap', 'chromium'))
const here = place()
const state: { host?: Host } = {}
beforeAll(async () => {
  state.host = await here.host()
  cpSync(join(import.meta.dir, '../../../../node_modules/preact'), join(here.cwd, 'node_modules/preact'), { recursive: true })
})
afterAll(async () => {
  await state.host?.close()
  here[Symbol.dispose]()
})

function write(path: string, text: string): void {
  mkdirSync(dirname(join(here.cwd, path)), { recursive: true })
  writeFileSync(join(here.cwd, path), text)
}

async function run(stories: string, timeoutMs?: number): Promise<CheckResult> {
  const { host } = state
  if (host === undefined) throw new Error('beforeAll has not run')
  return runCheck({ name: 'stories', tier: 2, stories, timeoutMs }, { host, setup: host.setup })
}

const counter = (hooks: string) => `import { useState } from '${hooks}'
export function Counter({ label, onCount }) {
  const [count, setCount] = useState(0)
  const add = () => { setCount(count + 1); onCount?.(count + 1) }
  return <section><h1>{label}</h1><button onClick={add}>{label} {count}</button><input aria-label="name" /></section>
}
`
const stories = `import { Counter } from './Counter.jsx'
export default { component: Counter, args: { label: 'Clicks' } }
export const Counts = {
  play: async ({ canvas, userEvent, expect, step }) => {
    await step('clicks', async () => {
      await userEvent.click(canvas.getByRole('button', { name: /Clicks/ }))
      await userEvent.click(await canvas.findByText(/Clicks 1|1/))
    })
    expect(canvas.getByRole('button')).toHaveTextContent('Clicks 2')
    await userEvent.type(canvas.getByLabelText('name'), 'Ann')
    expect(canvas.getByLabelText('name')).toHaveValue('Ann')
    expect(canvas.getByRole('heading')).toBeVisible()
    expect(canvas.queryByRole('dialog')).toBe(null)
  },
}
export const Forgets = {
  play: async ({ canvas, expect, step }) => {
    console.error('something is odd')
    await step('without a click', () => expect(canvas.getByRole('button')).toHaveTextContent('Clicks 7'))
  },
}
`
const asReact: readonly (readonly [path: string, text: string])[] = [
  ['react/index.js', "module.exports = require('preact/compat')"],
  ['react/jsx-runtime.js', "module.exports = require('preact/jsx-runtime')"],
  ['react/jsx-dev-runtime.js', "module.exports = require('preact/jsx-runtime')"],
  ['react-dom/index.js', "module.exports = require('preact/compat')"],
  ['react-dom/client.js', "module.exports = require('preact/compat/client')"],
]

browser('Preact: the component that counts passes, and what the other lacks is shown', async () => {
  write('preact/Counter.jsx', counter('preact/hooks'))
  write('preact/Counter.stories.jsx', stories)
  const result = await run('preact/*.stories.jsx')
  expect(result).toMatchObject({ tier: 2, pass: false })
  expect(result.evidence).toBe(
    [
      '1 of 2 stories passed',
      '',
      'preact/Counter.stories.jsx › Forgets: without a click › expected <button "Clicks 0"> "Clicks 0" toHaveTextContent "Clicks 7"',
      'console: something is odd',
      'page:',
      '- heading "Clicks" [level=1]',
      '- button "Clicks 0"',
      '- textbox "name"',
    ].join('\n'),
  )
  expect(result.files).toHaveLength(2)
  for (const { path } of result.files ?? []) {
    expect(path).toStartWith(join(here.home, 'stories'))
    expect([statSync(path).mode & 0o777, statSync(path).size > 500]).toEqual([0o600, true])
  }
})

browser('React and plain pages: a passing and a failing one each', async () => {
  for (const [path, text] of asReact) write(join('node_modules', path), text)
  write('react/Counter.jsx', counter('react'))
  write('react/Counter.stories.jsx', stories)
  write('page/style.css', '.hidden { display: none }')
  write(
    'page/menu.stories.html',
    `<link rel="stylesheet" href="./style.css"><button aria-expanded="false">Menu</button><ul class="hidden"><li>One</li></ul>
<script type="module">
export const Opens = { play: async ({ canvas, canvasElement, userEvent, expect }) => {
  const button = canvas.getByRole('button', { name: 'Menu' })
  button.addEventListener('click', () => canvasElement.querySelector('ul').classList.remove('hidden'))
  expect(canvasElement.querySelector('ul')).not.toBeVisible()
  await userEvent.click(button)
  expect(canvas.getByText('One')).toBeVisible()
} }
export const Expands = { play: ({ canvas, expect }) => expect(canvas.getByRole('button')).toHaveAttribute('aria-expanded', 'true') }
</script>`,
  )
  const { evidence, pass } = await run('{react,page}/*.stories.*')
  for (const [path] of asReact) rmSync(join(here.cwd, 'node_modules', dirname(path)), { recursive: true, force: true })
  expect(pass).toBe(false)
  expect(evidence.split('\n').filter((line) => / › |passed$/.test(line))).toEqual([
    '2 of 4 stories passed',
    'page/menu.stories.html › Expands: expected <button "Menu"> "Menu" toHaveAttribute "aria-expanded", "true"',
    'react/Counter.stories.jsx › Forgets: without a click › expected <button "Clicks 0"> "Clicks 0" toHaveTextContent "Clicks 7"',
  ])
})

browser('a hostile story reaches nothing, and holds nothing up', async () => {
  const reached: string[] = []
  using server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: ({ url }) => new Response(String(reached.push(url))) })
  const play = (name: string, code: string) => `export const ${name} = { play: async ({ expect, canvas }) => { ${code} } }\n`
  write(
    'evil/a.stories.ts',
    `export default { render: () => '<div style="animation: turn 1s infinite">here</div><style>@keyframes turn { to { rotate: 1turn } }</style>' }\n` +
      play('Animates', 'const again = () => requestAnimationFrame(again); again(); expect(canvas.getByText("here")).toBeVisible()') +
      play('Alerts', 'alert(1); confirm("?"); prompt("?")') +
      play(
        'Fetches',
        `let why = ''; try { await fetch('${server.url}') } catch (error) { why = String(error) } expect(why).toContain('Failed')`,
      ) +
      play(
        'Sockets',
        `await new Promise((yes, no) => { const s = new WebSocket('ws://127.0.0.1:${server.port}'); s.onerror = yes; s.onopen = no })`,
      ) +
      play(
        'Opens',
        `location.href = 'file:///etc/passwd'; await new Promise((yes) => setTimeout(yes, 50)); expect(document.body.textContent).not.toContain('root:')`,
      ) +
      play('Throws', `setTimeout(() => { throw new Error('later') }); await new Promise((yes) => setTimeout(yes, 50))`),
  )
  const stuck =
    play('Leaves', `location.href = '${server.url}'; await new Promise(() => {})`) + play('Waits', 'await new Promise(() => {})')
  // This one keeps a processor busy.
  write('stuck/a.stories.ts', stuck + (isDeep ? play('Hangs', 'for (;;) {}') : ''))
  write('evil/b.stories.ts', 'export const Broken = {\n')
  const { evidence, pass } = await run('evil/*.stories.ts')
  expect(pass).toBe(false)
  const of = (name: string) => evidence.split('\n').find((line) => line.includes(`› ${name}:`)) ?? 'passed'
  expect(['Animates', 'Alerts', 'Fetches', 'Sockets', 'Opens'].map(of)).toEqual(Array(5).fill('passed'))
  expect(of('Throws')).toEndWith('uncaught: later')
  expect(evidence).toContain('evil/b.stories.ts: it could not be bundled:')
  const { evidence: late } = await run('stuck/*.stories.ts', 30_000)
  expect(late).toMatch(/› Leaves: .*(?:because of a navigation|did not end)/)
  for (const name of isDeep ? ['Waits', 'Hangs'] : ['Waits']) expect(late).toContain(`› ${name}: it did not end within 3 s`)
  expect(reached).toEqual([])
})

browser('a macro runs in the sandbox, on a view that is dropped', async () => {
  write(
    'macro/steal.ts',
    `import { existsSync, readdirSync, writeFileSync } from 'node:fs'
export function steal() {
  writeFileSync('macro/made.txt', 'x')
  try { writeFileSync('${here.home}/macro', 'x') } catch {}
  return JSON.stringify({ env: Object.keys(process.env).sort(), home: existsSync('${here.home}/config.toml') })
}`,
  )
  write(
    'macro/a.stories.ts',
    `import { steal } from './steal.ts' with { type: 'macro' }
export const Shows = { play: ({ expect }) => expect(steal()).toBe('') }`,
  )
  process.env.BRAIDCLAW_TEST_SECRET = 'x'
  const { evidence } = await run('macro/*.stories.ts')
  delete process.env.BRAIDCLAW_TEST_SECRET
  expect(evidence).toContain('\\"home\\":false')
  expect(evidence).not.toContain('SECRET')
  expect([existsSync(join(here.cwd, 'macro/made.txt')), existsSync(join(here.home, 'macro'))]).toEqual([false, false])
})

test('without Chromium, or without stories, it was not run', async () => {
  const { host } = state
  if (host === undefined) throw new Error('beforeAll has not run')
  const setup = { ...host.setup, context: { ...host.setup.context, env: { ...host.setup.context.env, CHROMIUM: '/nowhere' } } }
  const missing = await runCheck({ name: 'stories', tier: 2, stories: '*.stories.ts' }, { host, setup })
  expect(missing).toMatchObject({ pass: false, notRun: true, evidence: expect.stringContaining('set CHROMIUM to its absolute path') })
  if (needs('bwrap', 'chromium')) expect(await run('nothing/*.stories.ts')).toMatchObject({ notRun: true })
})

browser('nothing of the browser is left', () => {
  const left = readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && existsSync(`/proc/${pid}/stat`) && isChildOfOurs(pid))
  expect(left).toEqual([])
})

function isChildOfOurs(pid: string): boolean {
  const { stdout } = Bun.spawnSync(['ps', '-o', 'ppid=,comm=', '-p', pid])
  const [parent, name = ''] = stdout.toString().trim().split(/\s+/)
  return Number(parent) === process.pid && name !== 'ps'
}
