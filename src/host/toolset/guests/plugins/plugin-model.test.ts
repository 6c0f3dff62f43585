/** Tests plugins that answer as a model, as real children in bubblewrap behind the provider of the configuration. */

import { expect, test } from 'bun:test'
import { needs } from '../../../../../test/support/needs.ts'
import { type ChatRequest, type ModelChunk, ProviderFailure } from '../../../../runtime/port.ts'
import { createSharedProviders, providerFor } from '../../../setup/provider-pool.ts'
import { stagePlugins } from './plugin.fixture.ts'

const real = test.if(needs('bwrap', 'python3'))
const config = '[providers.models.mine]\nkind = "plugin"\nplugin = "model"\n'

const question: ChatRequest = {
  systemPrompt: 'Be brief.',
  messages: [{ role: 'user', content: 'hello there, how are you today?' }],
  tools: [{ name: 'time', description: 'd', parameters: { type: 'object' } }],
  model: '',
}

/** Opens the provider of a plugin that answers `chat` by `body`. */
async function ask(body: string, given: { readonly config?: string; readonly more?: string; readonly approved?: boolean } = {}) {
  const at = stagePlugins('provider', `${config}${given.config ?? ''}`)
  at.put(
    'model',
    `def reply(content, calls=None, usage=None, **more):
    message = {"role": "assistant", "content": content}
    if calls: message["tool_calls"] = calls
    answer({"choices": [{"message": message, "finish_reason": "tool_calls" if calls else "stop"}], **({"usage": usage} if usage else {}), **more})
def refuse(code, text):
    send(id=id, error={"code": code, "message": text})
if method == "chat":
${body.replace(/^/gm, '    ')}`,
    given.more,
  )
  if (given.approved !== false) await at.approve('model')
  const shared = createSharedProviders()
  const provider = await providerFor(at.setup, 'mine', shared)
  const chunks: ModelChunk[] = []
  const say = async (request: ChatRequest = question, signal = new AbortController().signal) => {
    chunks.length = 0
    for await (const chunk of provider.chat(request, signal)) {
      chunks.push(chunk)
      if (chunk.type === 'done') return chunk.response
    }
    return undefined
  }
  const failure = async (...asked: Parameters<typeof say>) => {
    const error = await say(...asked).catch((failed: unknown) => failed)
    return error instanceof ProviderFailure ? `${error.code}: ${error.message}` : `no failure: ${error}`
  }
  const close = () => {
    shared.close()
    at[Symbol.dispose]()
  }
  return { at, chunks, say, failure, [Symbol.dispose]: close }
}

real('it gets the request of chat completions and answers with text in pieces, calls and its own counts', async () => {
  using on = await ask(`send(method="output", params={"id": id, "text": "I "})
send(method="output", params={"id": id, "text": "look"})
reply(" at it.", [{"id": "c1", "type": "function", "function": {"name": "time", "arguments": "{}"}}], {"prompt_tokens": 90, "completion_tokens": 12}, model=json.dumps([sorted(params), params["messages"], params["model"]]))`)
  const response = await on.say()
  expect(
    on.chunks
      .filter(({ type }) => type === 'text')
      .map((chunk) => (chunk as { text: string }).text)
      .join(''),
  ).toBe('I look at it.')
  expect(response).toMatchObject({
    parts: [
      { type: 'text', text: 'I look at it.' },
      { type: 'call', id: 'c1', name: 'time', input: {} },
    ],
    stop: 'tool_calls',
    usage: { inputTokens: 90, outputTokens: 12 },
    provider: 'mine',
  })
  expect(JSON.parse(response?.model ?? '')).toEqual([
    ['messages', 'model', 'stream', 'stream_options', 'tools'],
    [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'hello there, how are you today?' },
    ],
    'default',
  ])
})

real('counts that cannot be true are estimated, in both directions', async () => {
  for (const usage of [
    '{"prompt_tokens": 1, "completion_tokens": 1}',
    '{"prompt_tokens": 1e15, "completion_tokens": 5}',
    '{"prompt_tokens": -5, "completion_tokens": -5}',
  ]) {
    using on = await ask(`reply("four words are here", None, ${usage})`)
    const response = await on.say()
    expect(response?.usage).toMatchObject({ estimated: true })
    expect(response?.usage.inputTokens).toBeWithin(20, 200)
  }
})

real('what is not approved, or changed, never sees a prompt', async () => {
  using on = await ask('reply("x")', { approved: false })
  expect(await on.failure()).toBe(
    'bad_request: plugin model does not run: it is not approved; look at it and run: braidclaw plugin approve model',
  )
  await on.at.approve('model')
  expect((await on.say())?.parts).toEqual([{ type: 'text', text: 'x' }])
  on.at.put('model', 'if method == "chat":\n    answer({})')
  expect(await on.failure()).toContain('its files changed after they were approved')
})

real('a refusal has the code of a server: 429 and 503 are asked again, 400 and 401 are not', async () => {
  const seen = (code: number) => `with open("/tmp/n", "a") as file: file.write(".")
if len(open("/tmp/n").read()) < 2: refuse(${code}, "no \\x1b[2J")
else: reply("at last")`
  using passing = await ask(seen(503))
  expect((await passing.say())?.parts).toEqual([{ type: 'text', text: 'at last' }])
  using wrong = await ask(seen(400))
  expect(await wrong.failure()).toStartWith('bad_request: provider "mine" answered 400')
  using closed = await ask(seen(401))
  expect(await closed.failure()).toContain('check the variables of the plugin')
})

real(
  'one that dies in the middle of a reply, floods, or answers another call fails this request alone',
  async () => {
    const once = (body: string) => `if not os.path.exists("/tmp/done") and "again" not in str(params):
    ${body}
else: reply("fine")`
    for (const [body, why] of [
      [`send(method="output", params={"id": id, "text": "half"}); sys.exit(1)`, 'its process ended with exit code 1'],
      ['send(id="other", result={})', 'which is not open'],
      ['os.write(1, b"x" * 100_000_000)', 'longer than'],
      ['message(address="a", person="p", text="x")', 'it is not a channel'],
      ['answer("text")', 'choices'],
    ] as const) {
      using on = await ask(once(body), { config: 'max_retries = 0\n' })
      expect(await on.failure()).toContain(why)
      expect((await on.say({ ...question, messages: [{ role: 'user', content: 'again' }] }))?.parts).toEqual([
        { type: 'text', text: 'fine' },
      ])
    }
  },
  60_000,
)

real('one that hangs is given up after the time of the configuration, and a cancel ends the request', async () => {
  using on = await ask('time.sleep(3600)', { config: 'max_retries = 0\nidle_timeout_s = 1\n' })
  expect(await on.failure()).toStartWith('timeout: ')
  const stop = new AbortController()
  const over = on.failure(question, stop.signal)
  stop.abort()
  expect(await over).toStartWith('aborted: ')
})

real('it gets the declared variables, whose values are redacted; calls at the same time have a process each', async () => {
  using on = await ask(
    `calls = globals().get("calls", 0) + 1
time.sleep(0.5)
reply(json.dumps([os.environ.get("API_KEY"), calls]))`,
    { more: '[permissions]\nvariables = ["API_KEY"]\n' },
  )
  const said = async () => ((await on.say())?.parts[0] as { text: string } | undefined)?.text
  const both = [on.say(), on.say()]
  for (const response of await Promise.all(both)) expect(response?.parts).toEqual([{ type: 'text', text: '["q9f8e7d6c5b4", 1]' }])
  expect(await said()).toBe('["q9f8e7d6c5b4", 2]')
  expect(on.at.setup.redactor.text('q9f8e7d6c5b4')).not.toContain('q9f8e7d6c5b4')
})
