/** The parts of ECharts that the page uses; loaded with the first chart. Its tooltip and its lines
 * would take 20 KB more of what the page may weigh: a custom series and `Tip` do for both. */
import { CustomChart } from "echarts/charts";
import { DataZoomInsideComponent, GridComponent } from "echarts/components";
import * as echarts from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";

echarts.use([CustomChart, DataZoomInsideComponent, GridComponent, CanvasRenderer]);

export { echarts };
