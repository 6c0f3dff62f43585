/** Text that tries to become a script or an element of the page: from the model, from tools, as names of files, as titles. */

import { test as always, expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { browserOfFile, hasBrowser } from '../support/browser.ts'
import { gateway } from '../support/gateway.ts'
import { needs } from '../support/needs.ts'
import { call, home, scripted } from '../support/turns.ts'

const test = always.if(hasBrowser && needs('bwrap'))
const open = browserOfFile()

const image = '<img src=x onerror="window.broken=1">'
const script = '<script>window.broken=2</script>'
const payload = `${image}${script}<svg/onload=window.broken=3><iframe srcdoc="<script>parent.broken=4</script>"></iframe>`
const markdown = [
  payload,
  '[link](javascript:window.broken=5) [data](data:text/html,<script>window.broken=6</script>) ![picture](https://evil.example/pixel.png)',
  '<a href="javascript:window.broken=7">html link</a> <https://ok.example/> [ok](https://ok.example/ "title\\" onmouseover=\\"window.broken=8")',
  `\`${script}\``,
  `| ${image} | b |\n|---|---|\n| ${script} | c |`,
  `- ${image}\n- [x] ${script}`,
  `\`\`\`html\n${payload}\n\`\`\``,
  '&lt;b&gt;entity&lt;/b&gt; &amp;lt;twice&amp;gt;',
].join('\n\n')
const fileName = '<img src=x onerror=window.broken=9>.txt'

/** Elements that only the hostile text could have made. */
const planted = 'main img, main script, main iframe, main svg, a[href^="javascript:"], a[href^="data:"], main [onerror], main [onload]'

async function unharmed(page: Page, text: string): Promise<void> {
  await page.locator('main').getByText(text).first().waitFor()
  // Everything that can be opened is open.
  await page.evaluate(`document.querySelectorAll('details').forEach((each) => { each.open = true })`)
  expect(await page.locator(planted).count()).toBe(0)
  expect(await page.evaluate('window.broken')).toBeUndefined()
}

test('no page makes anything of it but text, and the content security policy has nothing to forbid', async () => {
  using at = home()
  at.file('a.txt', payload)
  const { env } = scripted(at, [
    { text: payload, thinking: payload, ...call('file_read', { path: 'a.txt' }) },
    call('shell', { command: `cat a.txt > '${fileName}'; cat a.txt; echo '${image}' >&2` }),
    { text: markdown, chunks: 40 },
    call('file_write', { path: payload, content: payload }),
    { text: 'Enough.' },
  ])
  await using server = await gateway(at, [], { env })
  await using visit = await open(server, { at: 'talk' })
  const { page, complaints } = visit
  const loaded: string[] = []
  page.on('request', (request) => loaded.push(request.url()))
  const turn = server.ask('/chat', { message: payload, on_approval: 'wait' })

  await page.goto(`${server.url}/#/`)
  await page.locator('.diff').getByText('onerror=window.broken=9').first().waitFor()
  await unharmed(page, 'onerror=window.broken=9')
  await page.getByRole('button', { name: 'Allow' }).click()
  const { conversation_id, run_id } = (await turn).body
  const second = server.ask('/chat', { message: 'more', conversation_id, on_approval: 'wait' })
  await page.locator('article.ask').waitFor()
  await unharmed(page, 'window.broken=2')
  await page.getByRole('button', { name: 'Deny' }).click()
  await second

  await page.goto(`${server.url}/#/talk/${conversation_id}`)
  await unharmed(page, 'Enough.')
  expect(await page.locator('.said').filter({ hasText: 'entity' }).textContent()).toContain('<b>entity</b> &lt;twice&gt;')
  const links = await page.evaluate(`[...document.querySelectorAll('.said a')].map(({ href, target, rel }) => [href, target, rel])`)
  expect(links).toEqual([
    ['https://ok.example/', '_blank', 'noreferrer noopener'],
    ['https://ok.example/', '_blank', 'noreferrer noopener'],
  ])

  for (const title of [payload.slice(0, 200), `"><img src=x onerror=window.broken=10>`]) {
    expect((await server.ask(`/conversations/${conversation_id}`, { title }, { method: 'PATCH' })).status).toBe(200)
    await page.getByRole('heading', { name: title.slice(0, 20) }).waitFor()
    await unharmed(page, title.slice(0, 20))
  }
  await page.goto(`${server.url}/#/runs`)
  await unharmed(page, '<img src=x')
  await page.goto(`${server.url}/#/runs/${run_id}`)
  await page.getByRole('button', { name: 'Show the difference' }).click()
  await page.locator('.diff').waitFor()
  await unharmed(page, 'window.broken=9')

  await server.ask('/estop', { reason: payload })
  await page.getByText('Emergency stop').waitFor()
  await unharmed(page, 'Transcript')
  expect(await page.evaluate(`document.querySelector('.banner').children.length`)).toBe(0)
  expect(loaded.filter((url) => !url.startsWith(server.url))).toEqual([])
  expect(complaints).toEqual([])
})

test('characters that hide or turn text around are shown by their number on every page', async () => {
  const hidden = (word: string) => `${word}\u202egnp.exe\u2066\u200b\u0007end`
  const shown = (word: string) => `${word}⟨202e⟩gnp.exe⟨2066⟩⟨200b⟩⟨07⟩end`
  using at = home()
  const { env } = scripted(at, [
    { text: hidden('looking'), ...call('file_read', { path: hidden('file') }) },
    { text: `${hidden('answer')}\n\n\`${hidden('code')}\`\n\n~~~\n${hidden('block')}\n~~~\n\n**${hidden('bold')}**` },
  ])
  await using server = await gateway(at, [], { env })
  await using visit = await open(server, { at: 'talk' })
  const { page } = visit
  const { conversation_id, run_id } = (await server.ask('/chat', { message: hidden('question') })).body
  const left = `(() => {
    const all = [...document.querySelectorAll('*')].flatMap((each) =>
      [...each.childNodes].flatMap((node) => (node.nodeType === 3 ? node.data : [])).concat(each.title ?? '', each.ariaLabel ?? ''))
    return all.filter((text) => /[\\u0000-\\u0008\\u200b\\u202a-\\u202e\\u2066-\\u2069]/.test(text))
  })()`
  for (const [place, words] of [
    [`talk/${conversation_id}`, ['question', 'answer', 'code', 'block', 'bold']],
    ['talk', ['question']],
    ['runs', ['question']],
    [`runs/${run_id}`, ['question', 'file', 'answer']],
    ['proof', ['question']],
    ['', []],
  ] as const) {
    await page.goto(`${server.url}/#/${place}`)
    for (const word of words) await page.locator('main').getByText(shown(word)).first().waitFor({ state: 'attached' })
    await page.evaluate(`document.querySelectorAll('details').forEach((each) => { each.open = true })`)
    expect([place, await page.evaluate(left)]).toEqual([place, []])
  }
}, 120_000)

test('an address that somebody sends leads to nothing but a page', async () => {
  using at = home()
  await using server = await gateway(at)
  await using visit = await open(server)
  const { page, complaints } = visit
  for (const place of [
    'talk/../../token',
    'runs/run_x%2f..%2f..%2festop',
    `talk/${encodeURIComponent(payload)}`,
    'talk/conversation_none',
    'nowhere',
  ]) {
    await page.goto(`${server.url}/#/${place}`)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.waitForTimeout(50)
    expect(await page.locator(planted).count()).toBe(0)
  }
  expect(await page.evaluate('window.broken')).toBeUndefined()
  expect(complaints).toEqual([])
})
