// The mock's time, and how it is written.

let known = { now: 0, frozen: false, at: 0 };

/** Takes in what `/_mock/clock` says. */
export function learn({ now, frozen }) {
  known = { now, frozen, at: performance.now() };
}

/** Returns the mock's time, in seconds since 1970. */
export const now = () => known.now + (known.frozen ? 0 : (performance.now() - known.at) / 1000);

const pad = (number, width = 2) => String(number).padStart(width, "0");

/** Writes an instant as `2026-01-01 00:00:00 UTC`. */
export const instant = (seconds) =>
  `${new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`;

/** Writes the time of day, to the millisecond. */
export const timeOfDay = (seconds) => new Date(seconds * 1000).toISOString().slice(11, 23);

/** Writes a length of time as `1:02:03`. */
export function length(seconds) {
  const whole = Math.max(0, Math.ceil(seconds));
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  return hours > 0 ? `${hours}:${pad(minutes)}:${pad(whole % 60)}` : `${minutes}:${pad(whole % 60)}`;
}

/** Writes a short length of time, such as `0.3 ms` or `2.5 s`. */
export const short = (seconds) =>
  seconds >= 1 ? `${seconds.toFixed(1)} s` : `${(seconds * 1000).toFixed(1)} ms`;
