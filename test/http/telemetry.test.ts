import { expect, test } from 'bun:test'
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { nest } from '../support/cli.ts'
import { type Gateway, gateway } from '../support/gateway.ts'
import { given } from '../support/needs.ts'

const parser = `
import json, sys
from prometheus_client.parser import text_string_to_metric_families as parse
print(json.dumps({s.name + json.dumps(s.labels, sort_keys=True): s.value for f in parse(sys.stdin.read()) for s in f.samples}))
`

/** Its library is a package of its own (python3-prometheus-client). */
const hasParser = given(
  Bun.spawnSync(['/bin/sh', '-c', "/usr/bin/python3 -c 'import prometheus_client'"]).success || Bun.env.CI === 'true',
  'python3-prometheus-client',
)
const parsed = test.if(hasParser)

/** Reads the metrics as Prometheus's own library does. */
async function metricsOf({ url, token }: Gateway): Promise<{ readonly [sample: string]: number }> {
  const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } })
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  const { stdout, stderr } = Bun.spawnSync(['/usr/bin/python3', '-c', parser], { stdin: Buffer.from(await response.text()) })
  expect(stderr.toString()).toBe('')
  return JSON.parse(stdout.toString())
}

const replies = [
  {
    tool_calls: [
      { name: 'time', arguments: {} },
      { name: 'file_delete', arguments: { path: 'x' } },
    ],
  },
  { text: 'done' },
]

parsed('what a turn did is counted, as the library of Prometheus reads it; without a token nothing is told', async () => {
  using at = nest()
  await using server = await gateway(at, [], { env: { BRAIDCLAW_MOCK_FIXTURE: at.fixture(replies) } })
  expect((await fetch(`${server.url}/metrics`)).status).toBe(401)
  await server.ask('/chat', { message: 'hi' })
  const found = await metricsOf(server)
  expect(found).toMatchObject({
    'braidclaw_conversations_total{}': 1,
    'braidclaw_receipts_total{}': 2,
    'braidclaw_receipt_chain_valid{}': 1,
    'braidclaw_turns_total{"channel": "http", "code": "answered"}': 1,
    'braidclaw_tool_calls_total{"status": "allowed", "tool": "time"}': 1,
    'braidclaw_tool_calls_total{"status": "denied", "tool": "file_delete"}': 1,
    'braidclaw_tool_denials_total{"tool": "file_delete"}': 1,
    'braidclaw_turn_duration_seconds_count{}': 1,
    'braidclaw_model_duration_seconds_bucket{"le": "+Inf"}': 2,
    'braidclaw_estop{}': 0,
  })
  expect(found['braidclaw_tokens_total{"direction": "input", "model": "mock"}']).toBeGreaterThan(0)
})

parsed('a turn of another process on the same home counts too', async () => {
  using at = nest()
  await using server = await gateway(at)
  await at.run(['agent', '-m', 'hi'])
  const turns = async () => (await metricsOf(server))['braidclaw_turns_total{"channel": "cli", "code": "answered"}']
  while ((await turns()) === undefined) await Bun.sleep(50)
  expect(await turns()).toBe(1)
})

parsed('the chain is valid, grows and stays valid, and is not valid any more once a receipt was altered', async () => {
  using at = nest()
  const call = { tool_calls: [{ name: 'time', arguments: {} }] }
  await using server = await gateway(at, [], { env: { BRAIDCLAW_MOCK_FIXTURE: at.fixture([call, { text: 'a' }, call, { text: 'b' }]) } })
  await server.ask('/chat', { message: 'one' })
  expect((await metricsOf(server))['braidclaw_receipt_chain_valid{}']).toBe(1)
  await server.ask('/chat', { message: 'two' })
  const found = await metricsOf(server)
  expect(found).toMatchObject({ 'braidclaw_receipt_chain_valid{}': 1, 'braidclaw_receipts_total{}': 2 })
  const log = join(at.home, '.braidclaw/tool_receipts.log')
  writeFileSync(log, readFileSync(log, 'utf8').replace('"time"', '"tiny"'))
  expect((await metricsOf(server))['braidclaw_receipt_chain_valid{}']).toBe(0)
})

parsed('a receipt that somebody adds makes the chain not valid', async () => {
  using at = nest()
  await using server = await gateway(at)
  await at.run(['agent', '-m', 'What time is it?'])
  const log = join(at.home, '.braidclaw/tool_receipts.log')
  expect((await metricsOf(server))['braidclaw_receipt_chain_valid{}']).toBe(1)
  appendFileSync(log, `${readFileSync(log, 'utf8').split('\n')[0]}\n`)
  expect((await metricsOf(server))['braidclaw_receipt_chain_valid{}']).toBe(0)
})

type Sent = {
  readonly resourceSpans: readonly { readonly resource: object; readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[] }[]
}
type OtlpSpan = {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly {
    readonly key: string
    readonly value: { readonly stringValue?: string; readonly intValue?: string; readonly doubleValue?: number }
  }[]
  readonly status: { readonly code?: number }
}

/** A collector that first says that it is busy, and keeps what it accepts. */
function collector(refusals: number) {
  const bodies: string[] = []
  const seen = { refusals, headers: new Headers(), path: '' }
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      seen.headers = request.headers
      seen.path = new URL(request.url).pathname
      if (seen.refusals-- > 0) return new Response('busy', { status: 503 })
      bodies.push(await request.text())
      return Response.json({ partialSuccess: {} })
    },
  })
  return { url: server.url.origin, bodies, seen, [Symbol.dispose]: () => void server.stop(true) }
}

test('the spans of a turn reach a collector that was busy at first, by the names of the conventions, and no text of anybody is in them', async () => {
  using at = nest()
  using there = collector(1)
  const env = {
    BRAIDCLAW_MOCK_FIXTURE: at.fixture([
      { tool_calls: [{ name: 'time', arguments: {} }], usage: { input_tokens: 200, output_tokens: 3, cached_input_tokens: 150 } },
      { text: 'the secret answer' },
    ]),
    OTEL_EXPORTER_OTLP_ENDPOINT: there.url,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-team=a%20b',
    OTEL_SERVICE_NAME: 'my-agent',
  }
  await using server = await gateway(at, [], { env })
  await server.ask('/chat', { message: 'the secret question' })
  while (there.bodies.length === 0) await Bun.sleep(50)
  expect(there.seen.path).toBe('/v1/traces')
  expect(there.seen.headers.get('x-team')).toBe('a b')
  expect(there.bodies.join('')).not.toContain('secret')
  const sent: readonly Sent[] = there.bodies.map((body) => JSON.parse(body))
  expect(JSON.stringify(sent[0]?.resourceSpans[0]?.resource)).toContain('my-agent')
  const spans = sent.flatMap(({ resourceSpans }) => resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans)))
  expect(spans.map(({ name }) => name)).toEqual(['chat mock', 'execute_tool time', 'chat mock', 'invoke_agent braidclaw'])
  const [chat, tool, , turn] = spans
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1)
  expect(chat?.traceId).toMatch(/^[0-9a-f]{32}$/)
  expect([chat?.parentSpanId, tool?.parentSpanId, turn?.parentSpanId]).toEqual([turn?.spanId, turn?.spanId, undefined])
  expect(
    Object.fromEntries((chat?.attributes ?? []).map(({ key, value }) => [key, value.stringValue ?? value.intValue ?? value.doubleValue])),
  ).toMatchObject({
    'gen_ai.operation.name': 'chat',
    'gen_ai.request.model': 'mock',
    'gen_ai.usage.input_tokens': '200',
    'gen_ai.usage.cache_read.input_tokens': '150',
    'gen_ai.usage.cache_creation.input_tokens': '0',
    'braidclaw.cached_share': 0.75,
  })
  expect(BigInt(turn?.endTimeUnixNano ?? 0)).toBeGreaterThanOrEqual(BigInt(turn?.startTimeUnixNano ?? 1))
})

test('a collector that is not there costs a turn nothing, and the server says that traces are lost and stops in time', async () => {
  using at = nest()
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' }
  await using server = await gateway(at, [], { env })
  const { body } = await server.ask('/chat', { message: 'hi' })
  expect(body.ending.code).toBe('answered')
  const { code } = await server.stop()
  expect(code).toBe(0)
})

test('OTEL_TRACES_EXPORTER=none sends nothing, and an address without a scheme is named in one line', async () => {
  using at = nest()
  using there = collector(0)
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: there.url, OTEL_TRACES_EXPORTER: 'None' }
  await using silent = await gateway(at, [], { env })
  expect((await silent.ask('/chat', { message: 'hi' })).body.ending.code).toBe('answered')
  await silent.stop()
  expect(there.bodies).toEqual([])
  for (const endpoint of ['localhost:4318', '127.0.0.1:4318', 'grpc://collector:4317']) {
    await using server = await gateway(at, [], { env: { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }, token: silent.token })
    expect((await server.ask('/chat', { message: 'hi' })).body.ending.code).toBe('answered')
    const { code, stderr } = await server.stop()
    expect([endpoint, code, stderr]).toEqual([endpoint, 0, expect.stringContaining(`${endpoint}/v1/traces`)])
    expect(stderr).toContain('traces are off: OTEL_EXPORTER_OTLP_ENDPOINT is not an HTTP URL')
    expect(stderr.split('\n').length).toBeLessThan(12)
  }
}, 60_000)
