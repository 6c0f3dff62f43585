/** The page Talk in a real browser: streaming, cancelling, conversations in two tabs, renaming and deleting. */

import { test as always, expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { browserOfFile, hasBrowser, say } from '../support/browser.ts'
import { countingModel } from '../support/counting-model.ts'
import { gateway } from '../support/gateway.ts'
import { needs } from '../support/needs.ts'
import { png } from '../support/picture.ts'
import { isDeep } from '../support/tier.ts'
import { call, everyTool, home, scripted } from '../support/turns.ts'
import { unknownQuestion } from '../support/window-questions.ts'

const test = always.if(hasBrowser)
/** The deep tier alone; the fast one drives a browser through one case of each kind. */
const deep = isDeep ? test : () => {}
const open = browserOfFile()

const log = (page: Page) => page.getByRole('log')

/** Waits until the button of the open question stands above the field, which covers the end of the page. */
const untilAboveTheField = async (page: Page) =>
  page.waitForFunction(([button, field]) => Number(button?.getBoundingClientRect().bottom) <= Number(field?.getBoundingClientRect().top), [
    await page.locator('article.ask button').first().elementHandle(),
    await page.locator('.say').elementHandle(),
  ] as const)

/** A model that streams what the test gives it, when the test gives it. */
function heldModel() {
  const held = Promise.withResolvers<ReadableStreamDefaultController<string>>()
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request) =>
      unknownQuestion(request) ??
      new Response(new ReadableStream<string>({ start: (controller) => held.resolve(controller) }).pipeThrough(new TextEncoderStream()), {
        headers: { 'content-type': 'text/event-stream' },
      }),
  })
  const frame = (delta: object, finish_reason: string | null = null) =>
    `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
  return {
    url: `http://127.0.0.1:${server.port}/v1`,
    say: async (content: string) => (await held.promise).enqueue(frame({ role: 'assistant', content })),
    end: async () => {
      const controller = await held.promise
      controller.enqueue(`${frame({}, 'stop')}data: [DONE]\n\n`)
      controller.close()
    },
    [Symbol.dispose]: () => void server.stop(true),
  }
}

test('text shows while it streams, and is whole when the turn ends', async () => {
  using model = heldModel()
  using at = home()
  at.config(
    everyTool
      .replace('default_provider = "local"', 'default_provider = "openai_compatible"')
      .replace('default_model = "mock"', 'default_model = "local-model"')
      .replace('http://localhost:1234/v1', model.url),
  )
  await using server = await gateway(at, [], { env: { OPENAI_API_KEY: 'none' } })
  await using visit = await open(server, { at: 'talk' })
  const { page, complaints } = visit
  await say(page, 'tell me')
  await log(page).getByText('tell me').waitFor()
  await model.say('The **first** half')
  const said = log(page).locator('.said.working')
  await said.getByText('first', { exact: true }).waitFor()
  expect(await said.textContent()).toBe('The first half')
  await page.getByRole('button', { name: 'Cancel the turn' }).waitFor()
  await model.say(' and the second.')
  await log(page).getByText('and the second.').waitFor()
  await model.end()
  await page.getByRole('button', { name: 'Cancel the turn' }).waitFor({ state: 'detached' })
  expect(await log(page).locator('.said').allTextContents()).toEqual(['You: tell me', 'The first half and the second.'])
  expect(await log(page).locator('.working').count()).toBe(0)
  expect(complaints).toEqual([])
})

test('a turn is cancelled, what it was asked stays, and the next message is answered', async () => {
  using at = home()
  const { env } = scripted(at, [{ text: 'Too late.', delay_ms: 20_000 }, { text: 'In time.' }])
  await using server = await gateway(at, [], { env })
  await using visit = await open(server, { at: 'talk' })
  const { page } = visit
  await say(page, 'wait')
  await page.getByRole('button', { name: 'Cancel the turn' }).click()
  await log(page).getByText('The turn ended (cancelled)').waitFor()
  await say(page, 'and now')
  await log(page).getByText('In time.').waitFor()
  await page.reload()
  await log(page).getByText('In time.').waitFor()
  expect(await log(page).textContent()).toMatch(/wait.*The turn ended \(cancelled\).*and now.*In time\./)
  expect(await log(page).textContent()).not.toContain('Too late.')
})

test('a question comes into view and takes the keys, and the focus goes back to the message', async () => {
  using at = home()
  const content = Array.from({ length: 60 }, (_, line) => `line ${line}`).join('\n')
  const write = (path: string) => call('file_write', { path, content })
  const { env } = scripted(at, [write('a.txt'), write('b.txt'), { text: 'Both.' }])
  await using server = await gateway(at, [], { env })
  await using visit = await open(server, { at: 'talk' })
  const { page, complaints } = visit
  const field = page.getByLabel('Message')
  const box = async () => (await page.locator('.say').boundingBox()) ?? { y: 0, height: 0 }
  await page.locator('.say').waitFor()
  // The box stands at the bottom before anything is said, too.
  expect(Math.abs((await box()).y + (await box()).height - 800)).toBeLessThan(30)
  await say(page, 'write two')
  const card = page.locator('article.ask')
  for (const path of ['a.txt', 'b.txt']) {
    await card.getByText(path).first().waitFor()
    await card.locator('.diff').waitFor()
    await untilAboveTheField(page)
    // What arrives late above the question, and a field that grows, hide nothing of it either.
    const parts = [log(page), page.locator('.say')]
    for (const part of parts) {
      await part.evaluate((element) => Object.assign(element.style, { minHeight: `${element.clientHeight + 90}px` }))
      await untilAboveTheField(page)
    }
    for (const part of parts) await part.evaluate((element) => Object.assign(element.style, { minHeight: '' }))
    expect(await card.evaluate((element) => element === element.ownerDocument.activeElement)).toBe(true)
    // A question takes no key before it can have been read.
    await page.waitForTimeout(500)
    await page.keyboard.press('y')
    await card.getByText(path).first().waitFor({ state: 'detached' })
  }
  await log(page).getByText('Both.').waitFor()
  expect(await field.evaluate((element) => element === element.ownerDocument.activeElement)).toBe(true)
  expect([await field.inputValue(), complaints]).toEqual(['', []])
})

test('a question that opens while a message is written leaves the keys to the message', async () => {
  using at = home()
  const { env } = scripted(at, [{ ...call('file_write', { path: 'a.txt', content: 'x' }), delay_ms: 700 }, { text: 'Not.' }])
  await using server = await gateway(at, [], { env })
  await using visit = await open(server, { at: 'talk' })
  const { page } = visit
  await say(page, 'write it')
  await page.getByRole('button', { name: 'Cancel the turn' }).waitFor()
  await page.getByLabel('Message').pressSequentially('wh')
  await page.locator('article.ask').waitFor()
  await page.waitForTimeout(500)
  await page.keyboard.type('y not')
  expect(await page.getByLabel('Message').inputValue()).toBe('why not')
  expect((await server.ask('/approvals')).body.approvals).toHaveLength(1)
})

test('a turn that failed is asked again by one button, and so is a conversation that could not be loaded', async () => {
  using at = home()
  const { env } = scripted(at, [{ error: 'network' }, { text: 'Here.' }])
  await using server = await gateway(at, [], { env })
  await using visit = await open(server, { at: 'talk' })
  const { page } = visit
  await say(page, 'are you there')
  await log(page).getByText('The turn ended').waitFor()
  await page.getByRole('button', { name: 'Retry' }).click()
  await log(page).getByText('Here.').waitFor()
  expect(await page.getByRole('button', { name: 'Retry' }).count()).toBe(0)
  expect(await log(page).locator('.said.user').allTextContents()).toEqual(['You: are you there', 'You: are you there'])
  await page.route(
    '**/conversations/*',
    (route) => route.fulfill({ status: 500, json: { error: { code: 'error', message: 'Broken.' } } }),
    { times: 1 },
  )
  await page.reload()
  await page.getByRole('alert').getByRole('button', { name: 'Retry' }).click()
  await log(page).getByText('Here.').waitFor()
})

test('a message that cannot be sent is not lost', async () => {
  using at = home()
  const server = await gateway(at)
  await using visit = await open(server, { at: 'talk' })
  const { page } = visit
  await page.getByLabel('Message').fill('keep me')
  await server.stop()
  await page.getByRole('button', { name: 'Send' }).click()
  await page.getByText('The server does not answer').first().waitFor()
  // The sign of the lost connection may stand there before the message has failed.
  await page.waitForFunction((field) => field && 'value' in field && field.value === 'keep me', await page.locator('#say').elementHandle())
})

deep('two tabs show the same conversation, in the same order, each line once', async () => {
  using at = home()
  const { env } = scripted(at, [{ text: 'One.' }, { text: 'Two.', delay_ms: 300 }, { text: 'Three.' }])
  await using server = await gateway(at, [], { env })
  await using visit = await open(server, { at: 'talk' })
  const { page: left, complaints } = visit
  await say(left, 'first')
  await log(left).getByText('One.').waitFor()
  const right = await left.context().newPage()
  await right.goto(left.url())
  await log(right).getByText('One.').waitFor()
  // The second is answered while the third waits for its turn.
  await say(right, 'second')
  await log(left).getByText('second').waitFor()
  await say(left, 'third')
  for (const page of [left, right]) {
    await log(page).getByText('Three.').waitFor()
    expect(await log(page).locator('.said').allTextContents()).toEqual([
      ...['You: first', 'One.', 'You: second', 'Two.', 'You: third', 'Three.'],
    ])
  }
  expect(complaints).toEqual([])
})

deep('a conversation is renamed and deleted, and the other tab learns of both', async () => {
  using at = home()
  const { env } = scripted(at, [{ text: 'Hello.' }])
  await using server = await gateway(at, [], { env })
  await using visit = await open(server, { at: 'talk' })
  const { page: left } = visit
  await say(left, 'a first question')
  await log(left).getByText('Hello.').waitFor()
  const right = await left.context().newPage()
  await right.goto(left.url())
  await right.getByRole('heading', { name: 'a first question' }).waitFor()
  await left.getByRole('button', { name: 'Rename' }).click()
  await left.getByLabel('Title').fill('Greetings')
  await left.getByLabel('Title').press('Enter')
  await right.getByRole('heading', { name: 'Greetings' }).waitFor()
  await right.getByRole('navigation', { name: 'Conversations' }).getByText('Greetings').waitFor()
  left.on('dialog', (dialog) => void dialog.accept())
  await left.getByRole('button', { name: 'Delete' }).click()
  await left.getByText('No conversations yet.').waitFor()
  await right.getByText('This conversation was deleted.').waitFor()
  expect((await server.ask('/conversations')).body.conversations).toEqual([])
})

if (needs('bwrap'))
  deep('a command in the background shows in its conversation, and stops there', async () => {
    using at = home()
    const start = call('shell', { command: 'echo up; exec sleep 60', background: true })
    const { env } = scripted(at, [start, { text: 'It runs.' }])
    await using server = await gateway(at, ['--auto'], { env })
    await using visit = await open(server, { at: 'talk' })
    const { page, complaints } = visit
    await say(page, 'serve')
    const shown = page.getByRole('region', { name: 'In the background' })
    await shown.getByText('echo up; exec sleep 60').waitFor()
    await shown.getByRole('button', { name: 'Stop' }).click()
    await shown.waitFor({ state: 'detached' })
    expect(complaints).toEqual([])
  })

test('a picture is attached or pasted, can be removed, and goes with the message', async () => {
  using model = countingModel()
  using at = home(model.config)
  await using server = await gateway(at, ['--model', 'fake/m'])
  await using visit = await open(server, { at: 'talk' })
  const { page, complaints } = visit
  const file = { name: 'a.png', mimeType: 'image/png', buffer: Buffer.from(png()) }
  const attach = page.getByLabel('Attach pictures')
  await attach.setInputFiles([file, file])
  await page.getByRole('button', { name: 'Remove 2 attached' }).click()
  await attach.setInputFiles([file])
  await page.evaluate(`const clipboardData = new DataTransfer()
    clipboardData.items.add(new File([new Uint8Array([${[...png({ width: 9 })].join(',')}])], 'b.png', { type: 'image/png' }))
    document.querySelector('#say').dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }))`)
  await page.getByRole('button', { name: 'Remove 2 attached' }).waitFor()
  await page.getByLabel('Message').fill('What is it?')
  await page.getByRole('button', { name: 'Send' }).click()
  await page.getByText('One two three.').first().waitFor()
  const shown = (bytes: Uint8Array) => ({
    type: 'image_url',
    image_url: { url: `data:image/png;base64,${Buffer.from(bytes).toString('base64')}` },
  })
  expect(model.asked.at(-1)?.messages.at(-1)?.content).toEqual([
    { type: 'text', text: 'What is it?' },
    shown(png()),
    shown(png({ width: 9 })),
  ] as never)
  expect(await page.getByRole('button', { name: /attached/ }).count()).toBe(0)
  expect(complaints).toEqual([])
})
