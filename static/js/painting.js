// Work that belongs to the next frame of the screen, and is done soon even where none is drawn: a tab in the
// background gets no frames, and a busy machine may draw none for seconds. What is shown must not wait for that.
const PATIENCE = 250; // milliseconds without a frame

export function soon(work) {
  const run = () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    work();
  };
  const frame = requestAnimationFrame(run);
  const timer = setTimeout(run, PATIENCE);
}
