/** Loaded before a program: its wall clock is wrong by WRONG_CLOCK_MS; with WRONG_CLOCK_JUMPS the error changes its sign twice a second. */

const RealDate = Date
const wrongMs = Number(process.env.WRONG_CLOCK_MS ?? 0)
const jumps = process.env.WRONG_CLOCK_JUMPS === '1'
const sign = () => (jumps && Math.floor(performance.now() / 500) % 2 === 1 ? -1 : 1)
const now = () => RealDate.now() + sign() * wrongMs

globalThis.Date = new Proxy(RealDate, {
  construct: (target, given, self) => Reflect.construct(target, given.length === 0 ? [now()] : given, self),
  get: (target, name, self) => (name === 'now' ? now : Reflect.get(target, name, self)),
})
